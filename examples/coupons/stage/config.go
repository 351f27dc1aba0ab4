package stage

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Config says how the play is to be played. The zero value of each field but Command means its default.
type Config struct {
	// Store is the URL of the store of locks. Its package must be imported by the shops' program. The names that are
	// locked begin with "coupons/demo-". Default: a file store of its own, removed afterwards.
	Store string

	// Servers is how many shops there are. Default: 4.
	Servers int

	// Coupons is how many coupons there are in each act. Default: 100.
	Coupons int

	// Buyers is how many people want one, in each act. Default: four times the coupons; twice is the least, since in
	// the third act somebody has to come when all is sold.
	Buyers int

	// TTL is that of the locks. A holder stands still for so long and a little longer. Default: 2 s, or the shortest that the store gives.
	TTL time.Duration

	// Command is a process that calls RunShop, not started.
	Command func() *exec.Cmd

	// Progress is told what happens, in one line at a time, by one goroutine. Default: nobody is.
	Progress func(line string)
}

// Check says what cannot be, before anything is started.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c Config) withDefaults() (Config, error) {
	c.Servers = cmp.Or(c.Servers, 4)
	c.Coupons = cmp.Or(c.Coupons, 100)
	c.Buyers = cmp.Or(c.Buyers, 4*c.Coupons)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	switch {
	case c.Servers < 2 || c.Servers > 32:
		return c, fmt.Errorf("stage: %d servers: want 2 to 32", c.Servers)
	case c.Coupons < 8 || c.Coupons > 10_000:
		return c, fmt.Errorf("stage: %d coupons: want 8 to 10000", c.Coupons)
	case c.Buyers < 2*c.Coupons || c.Buyers > 100_000:
		return c, fmt.Errorf("stage: %d buyers of %d coupons: want twice as many as coupons at least, and 100000 at most", c.Buyers, c.Coupons)
	case c.TTL != 0 && (c.TTL < 200*time.Millisecond || c.TTL > time.Minute):
		return c, fmt.Errorf("stage: TTL of %v: want 200ms to 1m", c.TTL)
	case c.Command == nil:
		return c, errors.New("stage: want Config.Command")
	}
	return c, nil
}
