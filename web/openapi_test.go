package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// described is what of openapi.json the tests look at.
type described struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schema }
}

type operation struct {
	Parameters []struct {
		Name     string
		Required bool
	}
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct{ Content map[string]media }
}

type media struct{ Schema schema }

type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Properties map[string]schema
	Required   []string
	Items      *schema
	Enum       []string
}

func description(t *testing.T) (d described) {
	t.Helper()
	if err := json.Unmarshal(openAPIFile, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func opened(t *testing.T) *Handler {
	t.Helper()
	h, err := New([]Store{{Name: "main", Driver: memlock.New()}}, &Options{Authorize: func(*http.Request) (Principal, error) {
		return Principal{Read: []string{""}, Break: []string{""}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// Every route below /v1 is described, with the parameters that it takes, and no other.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	h, d := opened(t), description(t)
	for path, methods := range h.routes {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		for method := range methods {
			op, ok := d.Paths[path][strings.ToLower(method)]
			if !ok {
				t.Errorf("%s %s is not described", method, path)
				continue
			}
			if method != http.MethodGet || path == "/v1/openapi.json" {
				continue
			}
			taken := map[string]bool{}
			for _, target := range []string{"?none=1", "?name=m&none=1"} { // to watch is two things
				r := httptest.NewRequest(method, path+target, nil)
				r.Host = "localhost"
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				_, list, _ := strings.Cut(w.Body.String(), "known are [")
				for _, word := range strings.Fields(strings.NewReplacer(`\"`, " ", "]", " ", "}", " ", `"`, " ").Replace(list)) {
					taken[word] = true
				}
				if path != "/v1/watch" {
					break
				}
			}
			var said []string
			for _, p := range op.Parameters {
				said = append(said, p.Name)
			}
			slices.Sort(said)
			if got := slices.Sorted(maps.Keys(taken)); !slices.Equal(got, said) {
				t.Errorf("%s %s takes %q, and %q are described", method, path, got, said)
			}
		}
	}
	for path, methods := range d.Paths {
		for method := range methods {
			if h.routes[path][strings.ToUpper(method)] == nil {
				t.Errorf("%s %s is described, and there is no such route", method, path)
			}
		}
	}
}

// Every answer has the fields that are described, and what is always there is required.
func TestOpenAPIHasTheFields(t *testing.T) {
	d := description(t)
	seen := map[string]bool{}
	for name, v := range map[string]any{
		"Line": line{}, "Claim": claim{}, "Owner": driver.Owner{}, "ListedLine": listedLine{}, "Lines": linesAnswer{}, "Failure": failureAnswer{},
		"Event": hub.Event{}, "History": historyAnswer{}, "Traits": traitsAnswer{}, "Latency": hub.Latency{}, "Store": storeAnswer{}, "Break": breakBody{},
		"Broken": breakAnswer{}, "Problem": problem{}, "Doctor": doctorAnswer{}, "Finding": driver.Finding{},
	} {
		seen[name] = true
		s, ok := d.Components.Schemas[name]
		if !ok {
			t.Errorf("%s is not described", name)
			continue
		}
		all, always := fieldsOf(reflect.TypeOf(v))
		if got := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, all) {
			t.Errorf("%s has the fields %q, and %q are described", name, all, got)
		}
		if name == "Break" {
			always = []string{"fence", "id", "name"} // see TestWrongRequests
		}
		slices.Sort(s.Required)
		if !slices.Equal(s.Required, always) {
			t.Errorf("%s always has %q, and %q are required", name, always, s.Required)
		}
	}
	for name := range d.Components.Schemas {
		if !seen[name] && name != "Stores" {
			t.Errorf("%s is described, and nothing is of that kind", name)
		}
	}
}

// fieldsOf returns the names of a type's JSON fields, and of those that are always there.
func fieldsOf(of reflect.Type) (all, always []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			a, b := fieldsOf(f.Type)
			all, always = append(all, a...), append(always, b...)
			continue
		}
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		all = append(all, name)
		if !strings.Contains(more, "omit") {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}

// What is answered is what is described: its types and its words.
func TestAnswersAreAsDescribed(t *testing.T) {
	h, d := opened(t), description(t)
	b := h.site.hubs[0]
	now := time.Now()
	claims := []driver.Holder{
		{PublicID: "a", Owner: driver.Owner{Name: "n", Start: now}, Kind: driver.Mutex, Held: true, Broken: true, Note: "x", Since: now, Until: now, Fence: 1},
		{PublicID: "b", Kind: driver.Permit, Foreign: true, Since: now},
	}
	b.History.Add("m", hub.EventOf(hub.Waited, claims[1], now), hub.EventOf(hub.Granted, claims[0], now))
	ms := int64(1)
	for name, v := range map[string]any{
		"Line": lineOf(b, driver.Line{Name: "m", Claims: claims}, now), "ListedLine": listedOf(b, driver.Line{Name: "m", Claims: claims}, now, time.Second),
		"Event": hub.Event{At: now, What: hub.Gone, Owner: driver.Owner{PID: 1}, Fence: "0", Waited: &ms, Over: true, By: "x", Now: true, Reason: "x", Result: "x"},
		"Store": storeAnswers(t.Context(), h.site, reader)[0], "Failure": failureOf(&hub.Failure{Since: now, Err: http.ErrAbortHandler}, reader), "Problem": changedProblem(b, driver.Line{Name: "m"}, Principal{Read: []string{""}}, "x"),
		"Lines": linesAnswer{Lines: json.RawMessage("[]"), Failure: failureOf(&hub.Failure{Since: now, Err: http.ErrAbortHandler}, reader), Next: "n", Partial: "p"},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		for _, fault := range d.faults(name, d.Components.Schemas[name], got) {
			t.Errorf("%s in %s", fault, text)
		}
	}
	if faults := d.faults("Line", d.Components.Schemas["Line"], map[string]any{"name": 1.0, "more": true}); len(faults) != 5 {
		t.Errorf("of a wrong answer it is said: %q", faults)
	}
}

// faults returns where a value is not as described.
func (d described) faults(at string, s schema, v any) (faults []string) {
	if s.Ref != "" {
		s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	wrong := func(format string, args ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, args...)) }
	switch v := v.(type) {
	case map[string]any:
		if s.Type != "object" {
			wrong("an object, want %s", s.Type)
		}
		for name, field := range v {
			if f, ok := s.Properties[name]; ok {
				faults = append(faults, d.faults(at+"."+name, f, field)...)
			} else {
				wrong("%s is not described", name)
			}
		}
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				wrong("%s is missing", name)
			}
		}
	case []any:
		if s.Type != "array" || s.Items == nil {
			wrong("an array, want %s", s.Type)
			break
		}
		for i, e := range v {
			faults = append(faults, d.faults(fmt.Sprintf("%s[%d]", at, i), *s.Items, e)...)
		}
	case string:
		if s.Type != "string" || s.Enum != nil && !slices.Contains(s.Enum, v) {
			wrong("%q, want %s of %q", v, s.Type, s.Enum)
		}
	case bool:
		if s.Type != "boolean" {
			wrong("%t, want %s", v, s.Type)
		}
	case float64:
		if s.Type != "integer" || v != float64(int64(v)) {
			wrong("%v, want %s", v, s.Type)
		}
	default:
		wrong("%v, want %s", v, s.Type)
	}
	return faults
}
