package main

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{[]float64{3}, 0.5, 3},
		{[]float64{3, 1}, 0.5, 2},
		{[]float64{5, 1, 3}, 0.5, 3},
		{[]float64{5, 1, 3}, 1, 5},
		{[]float64{0, 10}, 0.99, 9.9},
	} {
		if got := quantile(c.values, c.q); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.values, c.q, got, c.want)
		}
	}
}

func TestJainIndex(t *testing.T) {
	for _, c := range []struct {
		shares []int64
		want   float64
	}{
		{[]int64{7, 7, 7, 7}, 1},
		{[]int64{9, 0, 0}, 1.0 / 3},
		{[]int64{1, 3}, 0.8},
		{[]int64{0, 0}, 0},
	} {
		if got := jainIndex(c.shares); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("jainIndex(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 1234567.8: "1,234,568", 123: "123", 12.34: "12.3", 1: "1", 0.3333: "0.333", 0.05: "0.05", 0.00123: "0.00123",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

// A row with a goal that is met, one that is not, one that cannot be known,
// and a contender that broke.
func TestVerdicts(t *testing.T) {
	res := result{
		row: row{
			name: "r", reps: 3, metrics: []metric{handoffs},
			contenders: []contender{{"a", floor, nil}, {"b", ours, nil}, {"c", ours, nil}},
			goals: []goal{
				{"b", handoffs, atLeast, 0.4, 0.6, "a"},
				{"b", handoffs, atMost, 40, 0, ""},
				{"c", handoffs, atLeast, 0.4, 0, "a"},
				{"b", handoffs, neverOver, 55, 0, ""},
			},
		},
		spreads:  []map[metric]spread{{handoffs: {100, 90, 110}}, {handoffs: {50, 40, 60}}, {}},
		failures: map[string]error{"c": errors.New("exclusion violated: of course")},
	}
	var out strings.Builder
	printRow(&out, res, true)
	for _, want := range []string{
		"met      b, handoffs/s ≥ 0.4 × a: 0.5 × (stretch 0.6 not reached)",
		"NOT MET  b, handoffs/s ≤ 40: 50",
		"unknown  c, handoffs/s ≥ 0.4 × a: not measured",
		"NOT MET  b, handoffs/s in no repetition > 55: 60",
		"FAILED c: exclusion violated: of course",
		"50 (40–60)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	goals := recordRow(res, true).Goals
	if !goals[0].Met || goals[1].Met || goals[2].Met || goals[2].Value != nil {
		t.Errorf("recorded goals: %+v", goals)
	}
}
