package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// crowd is the buyers of an act. One goroutine uses it.
type crowd struct {
	coupon  string
	shops   []*process
	client  *http.Client
	width   int // how many are inside at once, those in stopped shops not counted
	left    int // buyers who have not come yet
	turn    int
	answers chan answer
	inside  int // in all shops

	sold, soldOut int
	others        []answer // that are neither
}

// answer is what a buyer was told.
type answer struct {
	shop   *process
	buyer  string
	status int
	text   string
	err    error
}

func newCrowd(coupon string, shops []*process, width, buyers int) *crowd {
	return &crowd{
		coupon: coupon, shops: shops, width: width, left: buyers, answers: make(chan answer),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: width}},
	}
}

// send sends a buyer into a shop.
func (c *crowd) send(ctx context.Context, p *process, buyer string) {
	c.left--
	c.inside++
	p.inside++
	go func() {
		a := answer{shop: p, buyer: buyer}
		a.status, a.text, a.err = c.buy(ctx, p.url, buyer)
		select {
		case c.answers <- a:
		case <-ctx.Done():
		}
	}()
}

func (c *crowd) buy(ctx context.Context, url, buyer string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/coupons/"+c.coupon+"/buy?buyer="+buyer, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(text)), err
}

// next waits for one answer.
func (c *crowd) next(ctx context.Context) (answer, error) {
	select {
	case a := <-c.answers:
		return a, c.note(a)
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// note counts an answer.
func (c *crowd) note(a answer) error {
	c.inside--
	a.shop.inside--
	switch {
	case a.err != nil:
		return fmt.Errorf("stage: %s got no answer from %s: %w", a.buyer, a.shop.role.Name, a.err)
	case a.status == http.StatusOK:
		c.sold++
	case a.status == http.StatusGone:
		c.soldOut++
	default:
		c.others = append(c.others, a)
	}
	return nil
}

// come lets buyers come, to each shop in turn, until one of them was told what enough wants to hear, or all have come.
// Those who are inside then stay inside.
func (c *crowd) come(ctx context.Context, enough func(answer) bool) error {
	for c.left > 0 {
		if shop := c.free(); shop != nil {
			c.send(ctx, shop, fmt.Sprintf("buyer-%d", c.left))
			continue
		}
		a, err := c.next(ctx)
		if err != nil {
			return err
		}
		if enough(a) {
			return nil
		}
	}
	return nil
}

// until waits until done is closed, while those who are inside get their answers.
func (c *crowd) until(ctx context.Context, done <-chan struct{}) error {
	for {
		if c.inside == 0 {
			return errors.New("stage: all buyers have their answers, and nobody pays")
		}
		select {
		case <-done:
			return nil
		case a := <-c.answers:
			if err := c.note(a); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// free returns the next shop that is not stopped, or nil if enough buyers are inside of those.
func (c *crowd) free() *process {
	inside := 0
	for _, p := range c.shops {
		if !p.stopped {
			inside += p.inside
		}
	}
	if inside >= c.width {
		return nil
	}
	for {
		c.turn++
		if p := c.shops[c.turn%len(c.shops)]; !p.stopped {
			return p
		}
	}
}

// leave waits until all who are inside have their answers.
func (c *crowd) leave(ctx context.Context) error {
	for c.inside > 0 {
		if _, err := c.next(ctx); err != nil {
			return err
		}
	}
	return nil
}
