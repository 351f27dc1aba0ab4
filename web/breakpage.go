package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// breakView is the page that asks whether a claim is to be broken.
type breakView struct {
	frame
	Name, Shown, LineHref string
	Claim                 claimView
	Fence                 string
	Held, Foreign         bool
	Ask, Tells, Do        string
}

// breakPage asks whether a claim is to be broken, and says what that does.
func (h *Handler) breakPage(w http.ResponseWriter, r *http.Request, who Principal) error {
	p, err := paramsOf(r, false, "store", "name", "id", "fence")
	if err != nil {
		return err
	}
	wish, err := h.wished(p)
	if err != nil {
		return err
	}
	if !who.mayRead(wish.name) || !who.mayBreak(wish.name) {
		return problemOf("forbidden", "%s may not break that name", who.called())
	}
	b := h.hub(wish.store)
	ctx, cancel := context.WithTimeout(r.Context(), hub.LineLimit)
	defer cancel()
	l, err := b.Store.Line(ctx, wish.name)
	if err != nil {
		return lookProblem(err, reader)
	}
	claim, stands := wish.in(l)
	if !stands {
		return changedProblem(b, l, who, "no claim %s with token %d stands in that line", wish.id, wish.fence)
	}
	now := time.Now()
	v := &breakView{
		frame: h.frame(r, &who, "Break "+printable.Text(wish.name)), Name: wish.name, Shown: printable.Text(wish.name), Claim: claimViewOf(b, wish.name, 0, claim, now),
		LineHref: address("line", "store", b.Name, "name", wish.name), Fence: token(wish.fence), Held: claim.Held, Foreign: claim.Foreign,
	}
	v.within(h, b, "line")
	owner := v.Claim.Owner
	switch {
	case !claim.Held:
		v.Ask, v.Do = "Take this claim out of the line?", "Remove"
		v.Tells = "It leaves the line at once. Where the store keeps no note of that for its owner, it stands in line again, at the end."
	case claim.Foreign:
		v.Ask, v.Do = "Break this lock of another program?", "Break at once"
		v.Tells = "That program reads no marks, so it is not told: the next gets in at once, although it may still be at work."
	default:
		v.Ask, v.Do = "Break this claim?", "Break"
		v.Tells = owner + " is told first. The next gets in when it has let go"
		if !claim.Until.IsZero() {
			v.Tells += ", or when its time is over, in " + spanWords(claim.Until.Sub(now)) + " at the latest"
		}
		v.Tells += "."
		if claim.Fence != 0 {
			v.Tells += " Its token, " + token(claim.Fence) + ", is smaller than the next one: what checks tokens refuses it from then on."
		}
	}
	return h.page(w, r, http.StatusOK, "break", v)
}

// breakForm does what the page asks for, and goes on to the page of the name, whose timeline says what came of it.
func (h *Handler) breakForm(w http.ResponseWriter, r *http.Request, who Principal) error {
	p, err := formOf(r, "store", "name", "id", "fence", "now", "reason")
	if err != nil {
		return err
	}
	wish, err := h.wished(p)
	if err != nil {
		return err
	}
	if _, err := h.breaks(r, who, wish); err != nil {
		return err
	}
	w.Header().Set("Location", h.opts.Prefix+"/"+address("line", "store", wish.store, "name", wish.name))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// wished reads which claim is meant, and how it is to be broken.
func (h *Handler) wished(p params) (w wish, err error) {
	b, err := h.meant(p, false)
	if err != nil {
		return w, err
	}
	w.store = b.Name
	if w.name, err = p.name("name"); err != nil {
		return w, err
	}
	if w.id, err = p.text("id", 128); err != nil {
		return w, err
	}
	if w.id == "" {
		return w, problemOf("bad-request", "no id: want the public id of the claim")
	}
	if w.fence, err = strconv.ParseUint(p["fence"], 10, 64); err != nil {
		return w, problemOf("bad-request", "fence %.50q: want the token of the claim, 0 where it has none", p["fence"])
	}
	now, err := p.oneOf("now", "0", "1")
	if err != nil {
		return w, err
	}
	w.now = now == "1"
	w.reason, err = p.text("reason", 256)
	return w, err
}
