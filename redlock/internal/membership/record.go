package membership

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Keys of a master itself.
const (
	RecordKey = redisstore.SideKeys + "redlock}:member" // its record
	VoteKey   = redisstore.SideKeys + "redlock}:vote"   // a fingerprint of the set that it may vote in, and its ID there
	UsedKey   = redisstore.SideKeys + "redlock}:used"   // the same, as long as the set is in use
	FloorKey  = redisstore.SideKeys + "redlock}:floor"  // a counter: all that are drawn from now on are above
	HighKey   = redisstore.SideKeys + "redlock}:high"   // a counter: none that was drawn is above
)

var (
	//go:embed member.lua
	text string

	script = redisconn.NewScript("interlock_quorum_member", text)
	keys   = []string{RecordKey, VoteKey, UsedKey, FloorKey, HighKey}
)

// Look is a call that asks a master what it has on record, and changes nothing.
func Look() redisconn.Call {
	return redisconn.Call{Script: script, Keys: keys, Args: []string{"look"}}
}

var errOvertaken = errors.New("another program has just changed what it has on record")

// Use is a call that tells a master with this vote that its set is in use.
func Use(vote string, maxTTL time.Duration) redisconn.Call {
	return redisconn.Call{Script: script, Keys: keys, Args: []string{"use", vote, ms(Used(maxTTL))}}
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// write writes a master's record and what becomes of its vote, unless the record is not the one
// that was seen.
func write(ctx context.Context, conn redisconn.Conn, name string, was Info, w Write) error {
	durable := "0"
	if was.Durable {
		durable = "1"
	}
	v, err := redisconn.Runner{Conn: conn}.Run(ctx, redisconn.Call{Script: script, Keys: keys, Behind: true, Args: []string{
		string(w.Vote), strconv.FormatInt(was.Record.Version, 10), was.Record.Run,
		strconv.FormatInt(w.Set.Version, 10), strings.Join(w.Set.Members, ","), ms(w.Set.MaxTTL), w.ID, was.Run, w.Set.Vote(w.ID),
		ms(Rejoin(w.Set.MaxTTL)), ms(Used(w.Set.MaxTTL)), durable, was.Past, strconv.FormatInt(w.Floor, 10),
		strconv.FormatInt(was.Record.Until, 10),
	}})
	if err == nil && v != int64(1) {
		err = fmt.Errorf("redlock: %s: %w: %w", name, driver.ErrNotSent, errOvertaken)
	}
	return err
}
