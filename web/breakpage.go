package web

import (
	"context"
	"net/http"
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

// breakPage answers by the page that asks whether a claim is to be broken, and says what that does.
func breakPage(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	p, err := paramsOf(r, false, "store", "name", "id", "fence")
	if err != nil {
		return err
	}
	b, err := s.store(p, false)
	if err != nil {
		return err
	}
	q, err := breakRequestOf(b, p)
	if err != nil {
		return err
	}
	if !who.mayRead(q.name) || !who.mayBreak(q.name) {
		return problemOf("forbidden", "%s may not break that name", who.label())
	}
	ctx, cancel := context.WithTimeout(r.Context(), hub.LineLimit)
	defer cancel()
	l, err := b.Store.Line(ctx, q.name)
	if err != nil {
		return lookProblem(err, reader)
	}
	claim, ok := q.in(l)
	if !ok {
		return changedProblem(b, l, who, "no claim %s with token %d stands in that line", q.id, q.fence)
	}
	now := time.Now()
	v := &breakView{
		frame: s.frame(r, &who, "Break "+printable.Text(q.name)), Name: q.name, Shown: printable.Text(q.name), Claim: claimViewOf(b, q.name, 0, claim, now),
		LineHref: address("line", "store", b.Name, "name", q.name), Fence: token(q.fence), Held: claim.Held, Foreign: claim.Foreign,
	}
	v.within(s.hubs, b, "line")
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
	return s.page(w, http.StatusOK, "break", v)
}

// breakForm breaks the claim of that page, and leads to the page of the name, whose timeline has
// the outcome.
func breakForm(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	p, err := formOf(r, "store", "name", "id", "fence", "now", "reason")
	if err != nil {
		return err
	}
	b, err := s.store(p, false)
	if err != nil {
		return err
	}
	q, err := breakRequestOf(b, p)
	if err != nil {
		return err
	}
	if _, err := s.breaker.do(r, who, q); err != nil {
		return err
	}
	w.Header().Set("Location", s.prefix+"/"+address("line", "store", b.Name, "name", q.name))
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
