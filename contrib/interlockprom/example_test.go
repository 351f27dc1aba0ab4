package interlockprom_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockprom"
	"github.com/interlock-go/interlock/memlock"
)

func Example() {
	metrics := interlockprom.New(&interlockprom.Options{Store: "main", Name: interlockprom.Names("coupons/*")})
	prometheus.MustRegister(metrics)
	client, err := interlock.New(memlock.New(), &interlock.Options{Tracer: metrics})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	err = client.Mutex("coupons/42").Do(context.Background(), func(context.Context) error {
		n, err := testutil.GatherAndCount(prometheus.DefaultGatherer, interlock.MetricWaitSeconds)
		fmt.Println(n, "series of waits")
		return err
	})
	fmt.Println(err)
	// Output:
	// 1 series of waits
	// <nil>
}
