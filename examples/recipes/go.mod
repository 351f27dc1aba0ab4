// A module of its own: nobody who uses the library has to load what the recipes are for.
module github.com/interlock-go/interlock/examples/recipes

go 1.25.0

require (
	github.com/golang-migrate/migrate/v4 v4.19.1
	github.com/interlock-go/interlock v0.0.0
	github.com/pressly/goose/v3 v3.27.0
	github.com/robfig/cron/v3 v3.0.1
	modernc.org/sqlite v1.58.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/sethvargo/go-retry v0.3.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	modernc.org/libc v1.75.6 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

replace github.com/interlock-go/interlock => ../..
