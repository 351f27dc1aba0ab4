package web

import (
	"context"
	"net/http"
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
	Watches bool           `json:"watches"`           // else it is asked each second
	Doctor  *doctorAnswer  `json:"doctor,omitempty"`  // of the last examination

	promises driver.Traits
	wrong    *hub.Failure // nil if nothing is known to be wrong
}

// storeAnswers asks all stores at the same time, and returns how they are. It waits until ctx ends.
func storeAnswers(ctx context.Context, s *site, who Principal) []storeAnswer {
	all := make([]storeAnswer, len(s.hubs))
	var asked sync.WaitGroup
	for i, b := range s.hubs {
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
func apiStores(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	if _, err := paramsOf(r, true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), hub.LineLimit)
	defer cancel()
	return answerJSON(w, map[string][]storeAnswer{"stores": storeAnswers(ctx, s, who)})
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

// storesPage answers by the page of stores.
func storesPage(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	ctx, cancel := context.WithTimeout(r.Context(), linePatience)
	defer cancel()
	v := &storesView{frame: s.frame(r, &who, "Stores")}
	v.tabs(s.hubs[0].Name, "stores")
	for i, a := range storeAnswers(ctx, s, who) {
		wrong := a.wrong
		if s.hubs[i].Store.Blind() {
			wrong = hub.Blind()
		}
		one := storeView{
			Name: a.Name, URL: a.URL, NamesHref: address("./", "store", a.Name), Failure: failureViewOf(wrong, who), Known: a.Health != "unknown",
			Safety: a.Safety, Facts: facts(a.promises, a.Watches), Doctor: a.Doctor.view(time.Now()),
		}
		v.Soon = v.Soon || a.Doctor == nil
		if l := a.Latency; l != nil {
			one.Latency = "half of the last " + numberWords(l.N) + " answers within " + microWords(l.P50) + ", 99 % within " + microWords(l.P99)
		}
		v.All = append(v.All, one)
	}
	return s.page(w, http.StatusOK, "stores", v)
}
