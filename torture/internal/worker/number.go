//go:build linux || darwin

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// addFenced changes the number in the file at path through package fence. The number is 0 before
// the first write.
func addFenced(path string, token uint64, change func(int64) int64) (history.WriteOutcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	begun := false
	err := fence.NewFile(path, 0o600).Update(ctx, token, func(content []byte) ([]byte, error) {
		n, err := parseNumber(content)
		if err != nil {
			return nil, err
		}
		begun = true
		return formatNumber(change(n)), nil
	})
	switch {
	case err == nil:
		return history.Acknowledged, nil
	case errors.Is(err, fence.ErrStale):
		return history.Refused, nil
	case begun:
		return history.Doubtful, err
	}
	return history.Unwritten, err
}

// addPlain changes the number in the file at path as any program would that trusts its lock.
func addPlain(path string, change func(int64) int64) (history.WriteOutcome, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return history.Unwritten, err
	}
	defer f.Close()
	return addIn(f, change)
}

// addIn is addPlain for a file that is open. The number has a fixed width, so that even with no
// lock at all updates are lost but never torn.
func addIn(f *os.File, change func(int64) int64) (history.WriteOutcome, error) {
	var content [numberWidth]byte
	n, err := f.ReadAt(content[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return history.Unwritten, err
	}
	number, err := parseNumber(content[:n])
	if err != nil {
		return history.Unwritten, err
	}
	if _, err := f.WriteAt(formatNumber(change(number)), 0); err != nil {
		return history.Doubtful, err
	}
	return history.Acknowledged, nil
}

// numberWidth is the width of a number in a file.
const numberWidth = 20

func formatNumber(n int64) []byte { return fmt.Appendf(nil, "%0*d\n", numberWidth-1, n) }

func parseNumber(content []byte) (int64, error) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return 0, nil
	}
	return strconv.ParseInt(string(content), 10, 64)
}

// ReadNumber returns the number in the file at path, 0 if there is none yet.
func ReadNumber(path string) (int64, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return parseNumber(content)
}
