package stage

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"
)

// entry is something that a shop said it did.
type entry struct {
	Shop    int // its index
	Time    time.Time
	What    string `json:"msg"`
	Buyer   string
	Number  int
	Token   uint64
	Error   string
	Address string
}

// journal is what all shops of an act said, as they said it. It is safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

// read notes what a shop says until it says no more, and hands its first words to open.
func (j *journal) read(shop int, from io.Reader, open func(address string)) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		e := entry{Shop: shop}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // not of the log
		}
		e.Shop = shop
		if e.What == "open" {
			open(e.Address)
			continue
		}
		j.mu.Lock()
		j.entries = append(j.entries, e)
		j.mu.Unlock()
	}
}

// sorted returns the entries by their time.
func (j *journal) sorted() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := slices.Clone(j.entries)
	slices.SortStableFunc(entries, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return entries
}

// visit is one buyer in one shop, from the look at the stock to the end of the sale.
type visit struct {
	shop     int
	buyer    string
	from, to time.Time
	number   int    // that the shop saw
	end      string // sold, refused, …
	surplus  bool   // sold when all that there were had been sold
}

// visits returns the visits of those who saw something to buy, in the order of their ends.
func visits(entries []entry, stock int) []visit {
	type key struct {
		shop  int
		buyer string
	}
	begun := map[key]entry{}
	var all []visit
	sold := 0
	for _, e := range entries {
		k := key{e.Shop, e.Buyer}
		switch e.What {
		case "looks":
			begun[k] = e
		case "sold", "refused", "unknown", "not paid":
			v := visit{shop: e.Shop, buyer: e.Buyer, from: begun[k].Time, to: e.Time, number: e.Number, end: e.What}
			if e.What == "sold" {
				sold++
				v.surplus = sold > stock
			}
			all = append(all, v)
		}
	}
	return all
}
