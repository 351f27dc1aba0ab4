// Package interlockprom measures locks for Prometheus: how long they are waited for and held, how many wait and hold, how near renewals
// came to a loss, and what was lost, and why. A [Collector] is both an [interlock.Tracer] and a [prometheus.Collector]:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"net/http"
//
//		"github.com/interlock-go/interlock"
//		"github.com/interlock-go/interlock/contrib/interlockprom"
//		_ "github.com/interlock-go/interlock/redislock"
//		"github.com/prometheus/client_golang/prometheus"
//		"github.com/prometheus/client_golang/prometheus/promhttp"
//	)
//
//	func main() {
//		metrics := interlockprom.New(&interlockprom.Options{Store: "main", Name: interlockprom.Names("nightly", "coupons/*")})
//		prometheus.MustRegister(metrics)
//		client, err := interlock.Open(context.Background(), "redis://localhost", &interlock.Options{Tracer: metrics})
//		if err != nil {
//			log.Fatal(err)
//		}
//		http.HandleFunc("POST /coupons/{id}", func(w http.ResponseWriter, r *http.Request) {
//			err := client.Mutex("coupons/"+r.PathValue("id")).Do(r.Context(), func(ctx context.Context) error {
//				return nil // the work, with the token interlock.Fence(ctx, name)
//			})
//			if err != nil {
//				http.Error(w, err.Error(), http.StatusServiceUnavailable)
//			}
//		})
//		http.Handle("GET /metrics", promhttp.Handler())
//		log.Fatal(http.ListenAndServe("localhost:8080", nil))
//	}
//
// # Metrics
//
// All have the label store. Seconds are histograms with classic buckets, and native ones beside them, which Prometheus reads where it is
// told to (scrape_native_histograms).
//
//	interlock_wait_seconds{kind, result}   from the call to its end: granted, passed, held, timeout, cancelled, unavailable, error
//	interlock_hold_seconds{kind}           from the grant to the release or loss
//	interlock_renew_slack_seconds          trust that leases had left when a renewal was answered or had failed; 0 is a loss
//	interlock_renewals_total{result}       ok, late (more than half of a lease's trust was over), error
//	interlock_lost_total{reason}           expired, stalled, session, gone, broken, max_hold, shutdown
//	interlock_uncertain_total              releases that the store has not confirmed in time
//	interlock_passes_total                 leases passed on inside this process, without asking the store
//	interlock_waiters, interlock_holders   now, in this process
//	interlock_build_info{version, goversion}
//
// kind is mutex, write, read or permit. A lock's name is no label, because names may be without number, unless [Options.Name] maps names to
// a few values: then those of waits, holds, losses, passes, waiters and holders have the label name. docs/observability.md in the
// repository says what to watch, and what to do.
package interlockprom
