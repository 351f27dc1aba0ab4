package main

import (
	"math"
	"slices"
)

// sample is what one repetition of one contender measured.
type sample map[metric]float64

// metric is a figure's name and unit, as printed.
type metric string

const (
	acquisitions   metric = "acquisitions/s"
	handoffs       metric = "handoffs/s"
	jain           metric = "Jain"
	longestWait    metric = "longest wait ms"
	meanWait       metric = "mean wait ms"
	usualWait      metric = "usual p50 wait ms"
	usualLongest   metric = "usual longest wait ms"
	stoppedWait    metric = "then p50 wait ms"
	stoppedLongest metric = "then longest wait ms"
	aboveUsual     metric = "longest above the usual ms"
	usualRate      metric = "usual acquisitions/s"
	stoppedRate    metric = "acquisitions/s while stopped"
	unbacked       metric = "acquisitions without a majority"
	firstAgain     metric = "first after ms"
	allAgain       metric = "all after ms"
	longestToMean  metric = "longest ÷ mean"
	mostToLeast    metric = "most ÷ least" // acquisitions of a goroutine
	raises         metric = "raises % of grants"
	cpuEach        metric = "CPU µs each"
	callsPer32     metric = "store calls per 32"
	scriptsEach    metric = "scripts each"
	scriptsPer32   metric = "scripts per 32"
	packets        metric = "server packets each"
	scriptTime     metric = "script µs each"
	serverEach     metric = "server CPU µs each"
	bothEach       metric = "CPU µs of both each" // client and server
	renewalTime    metric = "script µs of a renewal"
	pairTime       metric = "script µs of a release and an acquire"
	handoffTime    metric = "script µs of a handoff"
	serverTime     metric = "server CPU ms"
	scripts        metric = "scripts"
	latency        metric = "ms"
	recordReads    metric = "records read"
	pairs          metric = "pairs/s"
	pairMedian     metric = "p50 µs"
	pairSlow       metric = "p99 µs"
	tryMedian      metric = "p50 of a try µs"
	trySlow        metric = "p99 of a try µs"
	startToEnd     metric = "start to end ms"
	cpuShare       metric = "CPU % of a core"
	operations     metric = "operations/s"
	renewals       metric = "renewals/s"
	writeCalls     metric = "write syscalls/s"
	requestsEach   metric = "requests each"
	perRenewal     metric = "requests per renewal"
	connections    metric = "connections"
	serverShare    metric = "server CPU % of a core"
	serverCommands metric = "server commands/s"
	requests       metric = "requests/s"
	requestsPerTTL metric = "requests per process, lock and TTL"
	perTTL         metric = "operations per process, lock and TTL"
)

// spread is what the repetitions of a contender say together.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	return spread{Median: quantile(values, 0.5), Min: slices.Min(values), Max: slices.Max(values)}
}

// quantile sorts values and returns the q-th quantile of them, between two
// values by interpolation. It is NaN of no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	if low+1 == len(values) {
		return values[low]
	}
	return values[low] + (at-float64(low))*(values[low+1]-values[low])
}

// jainIndex is Jain's index of fairness: 1 when all shares are equal, 1/n
// when one of n has everything.
func jainIndex(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
