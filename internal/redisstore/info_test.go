package redisstore

import (
	"encoding/json"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// What is written without reflection reads back as what it was.
func TestInfoIsTheJSONThatItSays(t *testing.T) {
	owner := driver.Owner{Name: "web-3"}
	for _, i := range []Info{
		{Owner: owner.Encode()},
		{Owner: owner.Encode(), Kind: Letter(driver.Write), Note: "\"quoted\" \\ \x01 ü", Passes: 7, Channel: "il:push:x"},
	} {
		text := i.Append(nil)
		want, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(want) {
			t.Errorf("wrote %s, want %s", text, want)
		}
		h := driver.Holder{Kind: driver.Mutex}
		if got := Describe(&h, string(text)); got != i.Channel || h.Note != i.Note || h.Passes != i.Passes || h.Owner.Name != "web-3" {
			t.Errorf("%s reads as %+v with the channel %q", text, h, got)
		}
	}
}

func TestEveryKindHasALetterOfItsOwn(t *testing.T) {
	for _, k := range []driver.Kind{driver.Mutex, driver.Write, driver.Read, driver.Permit} {
		if got := KindOf(Letter(k)); got != k {
			t.Errorf("the letter %q of %v is taken for that of %v", Letter(k), k, got)
		}
	}
	if k := KindOf("x"); k != 0 {
		t.Errorf("a letter of no kind is taken for %v", k)
	}
}
