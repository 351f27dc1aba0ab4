package main

import (
	"context"
	"os"
)

// startTeam starts n workers with what their adapter lets them inherit. On an
// error the workers returned are those that did start.
func startTeam(ctx context.Context, n int, jobOf func(i int) job) ([]*worker, error) {
	a, err := findAdapter(jobOf(0).Adapter)
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, n)
	if a.files != nil {
		if files, err = a.files(n); err != nil {
			return nil, err
		}
	}
	defer func() {
		for _, f := range files {
			f.Close() // the workers have their own
		}
	}()
	var team []*worker
	for i := range n {
		w, err := startWorker(ctx, jobOf(i), files[i])
		if err != nil {
			return team, err
		}
		team = append(team, w)
	}
	return team, nil
}

func sayAll(team []*worker, word string) error {
	for _, w := range team {
		if err := w.say(word); err != nil {
			return err
		}
	}
	return nil
}

func stopAll(team []*worker) {
	for _, w := range team {
		w.stop()
	}
}
