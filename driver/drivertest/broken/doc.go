// Package broken has drivers that are wrong, each in one way in which drivers are wrong in
// practice, and each named with the law that it breaks.
//
// They are memlock behind a thin layer that does one thing badly. The test of this package shows on
// every run that the suite of package drivertest convicts each of them, under the law meant and for
// the reason meant, and acquits its twin: the same layer without the fault.
package broken
