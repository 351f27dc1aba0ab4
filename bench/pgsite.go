package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// query asks the run's PostgreSQL for a number.
func (s *site) query(ctx context.Context, sql string, args ...any) (n float64, err error) {
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, sql, args...).Scan(&n)
	return n, err
}

// clients is how many connections a PostgreSQL has, but for the one that
// asks.
func (s *site) clients(ctx context.Context) (float64, error) {
	if s.postgres == nil {
		return 0, nil
	}
	return s.query(ctx, "select count(*)::float8 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
}

// familyTime is the CPU time in seconds of a process of one thread and of its
// children, those that have ended included: PostgreSQL has a process for each
// connection.
func familyTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	var all float64
	for _, id := range append(strings.Fields(string(text)), strconv.Itoa(pid)) {
		used, err := runTime(id)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) { // the latter while it is read
			continue // it has just ended
		}
		if err != nil {
			return 0, err
		}
		all += used
	}
	ended, err := endedTime(pid)
	return all + ended, err
}

// runTime is what a process has run so far, in seconds. The ticks of its stat
// are too coarse: most of a hundred backends use none in a second.
func runTime(pid string) (float64, error) {
	text, err := os.ReadFile("/proc/" + pid + "/schedstat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(first, 64)
	return n / 1e9, err
}

// endedTime is what the children of a process used that have ended, in
// seconds.
func endedTime(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses, which may have any.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, fmt.Errorf("bench: /proc/%d/stat says %q", pid, text)
	}
	user, err := strconv.ParseFloat(fields[13], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[14], 64)
	const ticks = 100 // a second, on every architecture that Go knows
	return (user + system) / ticks, err
}
