// A module of its own: nobody who uses the library without gocron has to load it.
module github.com/interlock-go/interlock/contrib/gocron

go 1.25.0

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/google/uuid v1.6.0
	github.com/interlock-go/interlock v0.0.0
)

require (
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)

replace github.com/interlock-go/interlock => ../..
