package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

type mastersCommand struct {
	GiveUp []int `help:"Give up these masters, by number, for good: all that do not answer. Tokens that nobody else knows are lost." placeholder:"N,…"`
}

// masterJSON is a master as programs read it.
type masterJSON struct {
	Master string `json:"master"`
	Votes  bool   `json:"votes"`
	Why    string `json:"why,omitempty"` // not
}

// Run shows the masters of a quorum, or takes dead ones out of it.
func (c *mastersCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	d, name, err := common.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close(context.WithoutCancel(ctx)) }()
	masters, err := []driver.Master(nil), errors.ErrUnsupported
	if quorum, ok := d.(driver.Quorum); ok {
		masters, err = c.ask(ctx, quorum)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return usage("%s has no masters that vote: want --store redlock://A,B,C", name)
	}
	if len(masters) == 0 {
		return err
	}
	if common.JSON {
		all := make([]masterJSON, len(masters))
		for i, m := range masters {
			all[i] = masterJSON{m.Name, m.Err == nil, whyNot(m)}
		}
		return errors.Join(printJSON(t.out, all), err)
	}
	rows := [][]string{{"MASTER", "VOTES", "WHY NOT"}}
	for _, m := range masters {
		votes := "yes"
		if m.Err != nil {
			votes = "no"
		}
		rows = append(rows, []string{printable.Text(m.Name), votes, printable.Text(whyNot(m))})
	}
	printTable(t.out, rows, 0)
	if err == nil && len(c.GiveUp) > 0 {
		t.say("a token that only the masters given up knew, and masters that have forgotten it, may be followed by a smaller one")
	}
	return err
}

// ask returns the masters, and gives up those of --give-up.
func (c *mastersCommand) ask(ctx context.Context, q driver.Quorum) ([]driver.Master, error) {
	masters, err := q.Masters(ctx)
	if err == nil && len(c.GiveUp) > 0 {
		dead := make([]int, len(c.GiveUp))
		for i, n := range c.GiveUp {
			if n < 1 || n > len(masters) {
				return nil, usage("there is no master %d: want a number from 1 to %d", n, len(masters))
			}
			dead[i] = n - 1
		}
		masters, err = q.GiveUp(ctx, dead...)
	}
	if err != nil {
		err = storeError(err)
	}
	return masters, err
}

// whyNot says why a master has no vote, without what stands beside it.
func whyNot(m driver.Master) string {
	if m.Err == nil {
		return ""
	}
	text := strings.TrimPrefix(oneLine(m.Err), "redlock: "+m.Name+": ")
	return strings.TrimPrefix(text, driver.ErrNotSent.Error()+": ")
}
