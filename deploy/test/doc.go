// Package deploytest has only tests: of the alerts and the dashboard beside it, by Prometheus' own engine, with what programs measure to
// which the things happen that the alerts are about.
package deploytest
