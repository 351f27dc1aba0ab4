package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// storeAnswer is a store as programs read it.
type storeAnswer struct {
	Name    string         `json:"name"`
	URL     string         `json:"url"` // without secrets
	Traits  traitsAnswer   `json:"traits"`
	Safety  []string       `json:"safety"`
	Health  string         `json:"health"` // answers, fails, unknown
	Failure *failureAnswer `json:"failure,omitempty"`
	Latency *hub.Latency   `json:"latency,omitempty"` // of the last answers about one name
	Watches bool           `json:"watches"`           // it tells of changes; else it is asked each second
	Doctor  *doctorAnswer  `json:"doctor,omitempty"`  // of the last examination; none before the first is over

	promises driver.Traits
	wrong    *hub.Failure // nil if nothing is known to be
}

// traitsAnswer is what a store promises.
type traitsAnswer struct {
	Ordered  bool     `json:"ordered"`
	Shared   bool     `json:"shared"`
	Counted  bool     `json:"counted"`
	Mixed    bool     `json:"mixed"`
	Events   string   `json:"events"` // the kinds of claims that are told
	Expires  bool     `json:"expires"`
	Fence    string   `json:"fence"` // none, until restart, durable
	Single   bool     `json:"single"`
	MinTTL   int64    `json:"min_ttl_ms"`
	MaxTTL   int64    `json:"max_ttl_ms"` // 0: any
	Grain    int64    `json:"grain_ms"`
	Notice   int64    `json:"notice_ms"` // 0: it sees no death
	Survives []string `json:"survives"`  // process, restart, machine
}

func traitsOf(t driver.Traits) traitsAnswer {
	a := traitsAnswer{
		Ordered: t.Ordered, Shared: t.Shared, Counted: t.Counted, Mixed: t.Mixed, Events: t.Events.String(), Expires: t.Expires,
		Fence: t.Fence.String(), Single: t.Single, MinTTL: t.MinTTL.Milliseconds(), MaxTTL: t.MaxTTL.Milliseconds(),
		Grain: t.Grain.Milliseconds(), Notice: t.Notice.Milliseconds(), Survives: []string{},
	}
	for _, s := range []struct {
		what string
		does bool
	}{{"process", t.Survives.Process}, {"restart", t.Survives.Restart}, {"machine", t.Survives.Machine}} {
		if s.does {
			a.Survives = append(a.Survives, s.what)
		}
	}
	return a
}

// safety says what a store promises as it was opened, in sentences.
func safety(t driver.Traits) []string {
	var says []string
	add := func(s string) { says = append(says, s) }
	switch t.Fence {
	case driver.Durable:
		add("Of two exclusive leases of a name the later one has the larger token, also after a restart of the store and of its machine: what checks tokens is safe whatever happens here.")
	case driver.UntilRestart:
		add("Of two exclusive leases of a name the later one has the larger token until the store restarts or forgets; after that a token may be smaller.")
	case driver.NoFence:
		add("It draws no tokens: nothing tells a late write from a new one.")
	}
	switch s := t.Survives; {
	case s.Restart && s.Machine:
		add("Claims survive a restart of the store and of its machine, as far as its settings tell.")
	case s.Restart:
		add("Claims survive a restart of the store, and not one of its machine: after that two can hold one name until the first hears of it.")
	default:
		add("Claims do not survive a restart of the store: after one two can hold a name until the first hears of it.")
	}
	switch {
	case t.Survives.Process && t.Expires:
		add("The claims of a dead process go when their time is over.")
	case t.Notice > 0:
		add("The claims of a dead process go " + spanWords(t.Notice) + " after its death at the latest, where the store sees it.")
	}
	if t.Ordered {
		add("Who came first is served first.")
	} else {
		add("It keeps no order among those who wait.")
	}
	return says
}

// answers returns all stores as they are, asking all at once.
func (h *Handler) answers(ctx context.Context, who Principal) []storeAnswer {
	all := make([]storeAnswer, len(h.hubs))
	var asked sync.WaitGroup
	for i, b := range h.hubs {
		asked.Go(func() {
			t, broken := b.Store.Traits()
			health := make(chan struct{})
			var wrong *hub.Failure
			var known bool
			go func() {
				defer close(health)
				wrong, known = b.Store.Check(ctx)
			}()
			doctor := b.Doctor.Examine(ctx)
			<-health
			if broken != nil {
				wrong = &hub.Failure{Since: time.Now(), Err: broken}
			}
			a := storeAnswer{
				Name: b.Name, URL: b.URL, Traits: traitsOf(t), Safety: safety(t), Health: "unknown", Failure: failureOf(wrong, who),
				Latency: b.Store.Latency(), Watches: b.Store.Watches(), Doctor: doctorOf(doctor, who),
				promises: t, wrong: wrong,
			}
			switch {
			case wrong != nil:
				a.Health = "fails"
			case known:
				a.Health = "answers"
			}
			all[i] = a
		})
	}
	asked.Wait()
	return all
}

// apiStores answers GET /v1/stores.
func (h *Handler) apiStores(w http.ResponseWriter, r *http.Request, who Principal) error {
	if _, err := paramsOf(r, true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), hub.LineLimit)
	defer cancel()
	return answerJSON(w, map[string][]storeAnswer{"stores": h.answers(ctx, who)})
}

// storesView is the page of stores.
type storesView struct {
	frame
	All []storeView
}

// storeView is a store as a page has it.
type storeView struct {
	Name, URL, NamesHref string
	Failure              *failureView
	Known                bool
	Latency              string
	Safety               []string
	Facts                []fact
	Doctor               *doctorView // nil before the first examination is over
}

type fact struct{ What, Is string }

// storesPage is the page of stores.
func (h *Handler) storesPage(w http.ResponseWriter, r *http.Request, who Principal) error {
	ctx, cancel := context.WithTimeout(r.Context(), linePatience)
	defer cancel()
	v := &storesView{frame: h.frame(r, &who, "Stores")}
	v.tabs(h.hubs[0].Name, "stores")
	for i, a := range h.answers(ctx, who) {
		wrong := a.wrong
		if h.hubs[i].Store.Blind() {
			wrong = hub.Blind()
		}
		s := storeView{
			Name: a.Name, URL: a.URL, NamesHref: address("./", "store", a.Name), Failure: failureViewOf(wrong, who), Known: a.Health != "unknown",
			Safety: a.Safety, Facts: facts(a.promises, a.Watches), Doctor: a.Doctor.view(time.Now()),
		}
		v.Soon = v.Soon || a.Doctor == nil
		if l := a.Latency; l != nil {
			s.Latency = "half of the last " + numberWords(l.N) + " answers within " + microWords(l.P50) + ", 99 % within " + microWords(l.P99)
		}
		v.All = append(v.All, s)
	}
	return h.page(w, r, http.StatusOK, "stores", v)
}

// facts are the traits in words.
func facts(t driver.Traits, watches bool) []fact {
	word := func(is bool) string { return map[bool]string{true: "yes", false: "no"}[is] }
	ttl := spanWords(t.MinTTL) + " or more"
	if t.MaxTTL > 0 {
		ttl = spanWords(t.MinTTL) + " to " + spanWords(t.MaxTTL)
	}
	survives := strings.Join(traitsOf(t).Survives, ", ")
	if survives == "" {
		survives = "nothing"
	}
	return []fact{
		{"Ordered", word(t.Ordered)},
		{"Readers", word(t.Shared)},
		{"Permits", word(t.Counted)},
		{"Kinds mix", word(t.Mixed)},
		{"Tells who waits", t.Events.String()},
		{"Tells this page of changes", word(watches)},
		{"Claims go by themselves", word(t.Expires)},
		{"Tokens", t.Fence.String()},
		{"TTL", ttl},
		{"Claims survive", survives},
	}
}

// microWords is a span of microseconds.
func microWords(us int64) string {
	if us < 1000 {
		return strconv.FormatInt(us, 10) + " µs"
	}
	return strconv.FormatFloat(float64(us/10)/100, 'f', -1, 64) + " ms"
}
