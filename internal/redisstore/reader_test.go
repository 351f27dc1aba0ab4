package redisstore

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// texts are what many claims of one session say, and of one other.
func texts(n int) (all []string) {
	owner := driver.Owner{Name: "worker-17", Host: "app-3.example.org", User: "deploy", PID: 4711, Program: `{"x"}`}
	for i := range n {
		info := Info{Owner: owner.Encode(), Kind: "m"}
		if i == n/2 {
			info = Info{Owner: driver.Owner{Name: "other"}.Encode(), Note: "seldom"}
		}
		all = append(all, string(info.Append(nil)))
	}
	return all
}

// A listing says of each claim what it says alone.
func FuzzReader(f *testing.F) {
	for _, text := range append(texts(3),
		`{"o":{"name":"a"}}`, `{"o":{"name":"a"},"k":"w","n":"}","p":3,"c":"il:push:x"}`, `{"o":{"name":"a"},"o":{"name":"b"}}`, `{"o":{"name":"a"},"O":null}`,
		`{"o":{"name":"a"},}`, `{"o":{"name":"a"}"k":"m"}`, `{"o":{"name":"a"} , "k":"m"}`, `{"o":"a"}`, `{"o":{"name":"\"}"},"p":"x"}`, `{"o":{`, `{"o":{}}{}`, ``,
	) {
		f.Add(text, text)
	}
	f.Add(`{"o":{"name":"a"}}`, `{"o":{"name":"a"},"o":{"name":"b"},"p":2}`)
	f.Add(`{"o":{"pid":"a"},"k":"m"}`, `{"o":{"pid":"a"},"k":"w"}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var r Reader
		for i, text := range []string{first, second, first, second} {
			got, want := driver.Holder{Kind: driver.Mutex, Note: "before"}, driver.Holder{Kind: driver.Mutex, Note: "before"}
			gotChannel, wantChannel := r.Describe(&got, text), Describe(&want, text)
			if got != want || gotChannel != wantChannel {
				t.Errorf("%d: %q reads as %+v with the channel %q, alone as %+v with %q", i, text, got, gotChannel, want, wantChannel)
			}
		}
	})
}

// What many claims of a listing have in common is decoded once.
func TestReaderDecodesEqualOwnersOnce(t *testing.T) {
	var r Reader
	all := texts(1000)
	for _, text := range all {
		var h driver.Holder
		r.Describe(&h, text)
	}
	if len(r.owners) != 2 || len(r.rests) > 2 {
		t.Errorf("%d owners and %d rests were decoded, want one for each of two", len(r.owners), len(r.rests))
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, text := range all {
			var h driver.Holder
			r.Describe(&h, text)
		}
	}); n > float64(len(all))/10 {
		t.Errorf("a thousand claims of known owners cost %v allocations, want next to none", n)
	}
}

// The cost of what the claims of a listing say, per claim: read together, and each alone.
func BenchmarkReader(b *testing.B) {
	all := texts(1000)
	for together, describe := range map[bool]func() func(*driver.Holder, string) string{
		true:  func() func(*driver.Holder, string) string { return new(Reader).Describe },
		false: func() func(*driver.Holder, string) string { return Describe },
	} {
		b.Run(fmt.Sprintf("together=%t", together), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; {
				read := describe()
				for _, text := range all[:min(len(all), b.N-i)] {
					var h driver.Holder
					read(&h, text)
					i++
				}
			}
		})
	}
}
