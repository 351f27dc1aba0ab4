//go:build linux || darwin

package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// Floor is the durable side of the tokens, and the page that says which layout and which boot the store is in.
//
// No token is handed out above the floor before the floor has been raised and synced to disk, a minute or two ahead, so
// that this happens at most once a minute. After a reboot, when records are void and may be torn, tokens go on above
// the floor, whatever the clock says. The floor is written without a lock, so that nobody who is stopped while he
// writes it holds up the others: floors are multiples of a minute, each has a slot of its own among 200, the
// highest valid slot counts, and two who write the same floor write the same bytes.
//
//	 0  8  magic             64 …    slots of 16 bytes: floor, check
//	 8  2  major version
//	16 16  boot id
//	32  8  durable: the highest floor known to be on disk
//	40  8  base: records that are new begin above it
//	48  8  when somebody last swept, on the boot-time clock
//	56  8  removals: how many records sweepers have removed, or are about to
type Floor struct {
	st   *Store
	File *os.File
	machine.Mapped
	Syncs atomic.Uint64
	ahead atomic.Bool // somebody in this process is raising it ahead of time
	start func(func())
}

const (
	floorName  = "floor"
	floorMagic = "ilkfloor"
	floorAhead = uint64(time.Minute / time.Microsecond) // tokens are microseconds when they follow the clock
	slotsAt    = 64
	slotSize   = 16
	slots      = 200
	slotCheck  = 0x9e3779b97f4a7c15
)

// errNoFloor says that the file of that name is no floor.
var errNoFloor = fmt.Errorf("%w: it does not begin as a floor does; is the directory used for something else?", ErrDamaged)

// OpenFloor opens the floor of st, makes it in a new store, and takes the store over into this boot. What it does in the
// background is run by start.
func OpenFloor(st *Store, start func(func())) (*Floor, error) {
	path := filepath.Join(st.Dir, floorName)
	f, err := st.openOrCreate(path)
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	fl := &Floor{st: st, File: f, start: start}
	if err := fl.enter(); err != nil {
		f.Close()
		return nil, fmt.Errorf("filelock: %s: %w", path, err)
	}
	return fl, nil
}

// enter maps the page when it is complete and of this boot; whoever finds it otherwise makes it so under its flock.
func (fl *Floor) enter() error {
	if ok, err := fl.ready(); ok || err != nil {
		return err
	}
	if err := machine.LockFor(int(fl.File.Fd()), 10*time.Second); err != nil {
		return fmt.Errorf("somebody is preparing the store and does not end: %w", err)
	}
	defer machine.Unflock(int(fl.File.Fd()))
	if ok, err := fl.ready(); ok || err != nil {
		return err
	}
	if err := fl.st.SelfTest(); err != nil {
		return err
	}
	if fl.Page == nil {
		page := make([]byte, PageSize)
		copy(page, floorMagic)
		binary.LittleEndian.PutUint16(page[8:], Major)
		copy(page[16:32], fl.st.Boot[:])
		if _, err := fl.File.WriteAt(page, 0); err != nil {
			return err
		}
		if err := fl.File.Sync(); err != nil {
			return err
		}
		if err := syncDir(fl.st.Dir); err != nil {
			return err
		}
		fl.Syncs.Add(1)
		_, err := fl.ready()
		return err
	}
	return fl.use(fl.takeOver)
}

// takeOver begins a new boot: every claim is void, and so is every file of the store, whole or torn by the crash. Only
// the floor remains, and what is not the store's.
func (fl *Floor) takeOver() error {
	highest := max(fl.base().Load(), fl.durable().Load(), HighestSlot(fl.Page))
	fl.base().Store(highest)
	fl.durable().Store(highest)
	fl.swept().Store(0)
	for dir, ours := range map[string]func(string, os.DirEntry) bool{fl.st.Locks: IsRecord, fl.st.Sessions: IsOfSession} {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !ours(dir, f) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	copy(fl.Page[16:32], fl.st.Boot[:]) // last: who finds it need not look further
	return nil
}

// HighestSlot returns the floor that a page of a floor file holds.
func HighestSlot(page []byte) (highest uint64) {
	for i := range slots {
		at := page[slotsAt+i*slotSize:]
		value := binary.LittleEndian.Uint64(at)
		if binary.LittleEndian.Uint64(at[8:]) == value^slotCheck {
			highest = max(highest, value)
		}
	}
	return highest
}

// ready maps the page if it is complete and reports whether it is of this boot.
func (fl *Floor) ready() (_ bool, err error) {
	if fl.Page == nil {
		info, err := fl.File.Stat()
		if err != nil || info.Size() == 0 {
			return false, err
		}
		if info.Size() < PageSize {
			return false, fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, info.Size(), PageSize)
		}
		if fl.Mapped, err = machine.Map(fl.File, 0, PageSize); err != nil {
			return false, err
		}
	}
	ready := false
	err = fl.use(func() error {
		if major := binary.LittleEndian.Uint16(fl.Page[8:]); major > Major {
			return fmt.Errorf("%w of Interlock: its layout is %d, this program knows %d: use the newer version for all programs of this store", ErrNewer, major, Major)
		}
		ready = string(fl.Page[16:32]) == string(fl.st.Boot[:])
		return nil
	})
	return ready, err
}

// use runs do, which may use the page, if it begins as that of a floor. There is no token without one, because those of
// the next boot could begin below it.
func (fl *Floor) use(do func() error) error {
	err := errCut
	fl.Touch(func() {
		if string(fl.Page[:8]) != floorMagic || binary.LittleEndian.Uint16(fl.Page[8:]) == 0 {
			err = errNoFloor
			return
		}
		err = do()
	})
	return err
}

// The words of the page, to be used within use.

func (fl *Floor) durable() *atomic.Uint64  { return fl.Word(32) }
func (fl *Floor) base() *atomic.Uint64     { return fl.Word(40) }
func (fl *Floor) swept() *atomic.Uint64    { return fl.Word(48) }
func (fl *Floor) removals() *atomic.Uint64 { return fl.Word(56) }

// Draw reserves tokens as driver.Draw does, above the floor of earlier boots and never above the durable one.
func (fl *Floor) Draw(stored uint64, now time.Time) (fence, reserved uint64, err error) {
	err = fl.use(func() error {
		fence, reserved, err = driver.Draw(max(stored, fl.base().Load()), now)
		if err != nil {
			return err
		}
		durable := fl.durable().Load()
		if reserved > durable {
			return fl.raise(reserved)
		}
		if reserved > durable-floorAhead/2 && fl.ahead.CompareAndSwap(false, true) {
			fl.start(func() { fl.raiseAhead(reserved + floorAhead/2) })
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("filelock: %s: %w", fl.File.Name(), err)
	}
	return fence, reserved, nil
}

// raiseAhead makes the floor durable before somebody has to wait for it. One process is enough. An error comes back when the
// floor is reached.
func (fl *Floor) raiseAhead(reserved uint64) {
	defer fl.ahead.Store(false)
	if ok, _ := machine.Flock(int(fl.File.Fd()), unix.LOCK_EX); ok {
		defer machine.Unflock(int(fl.File.Fd()))
		_ = fl.use(func() error { return fl.raise(reserved) })
	}
}

// raise makes a floor above reserved durable.
func (fl *Floor) raise(reserved uint64) error {
	value := (reserved/floorAhead + 2) * floorAhead
	if fl.durable().Load() >= value {
		return nil
	}
	var slot [slotSize]byte
	binary.LittleEndian.PutUint64(slot[:], value)
	binary.LittleEndian.PutUint64(slot[8:], value^slotCheck)
	if _, err := fl.File.WriteAt(slot[:], int64(slotsAt+(value/floorAhead)%slots*slotSize)); err != nil {
		return fmt.Errorf("cannot make the tokens' floor durable: %w", err)
	}
	if err := fl.File.Sync(); err != nil {
		return fmt.Errorf("cannot make the tokens' floor durable: %w", err)
	}
	fl.Syncs.Add(1)
	raiseWord(fl.durable(), value) // only now: whoever sees it hands out tokens below it
	return nil
}

// DueToSweep reports whether nobody has swept for as long as every, and notes that the caller does. A store that has just come into
// this boot has nothing to sweep.
func (fl *Floor) DueToSweep(now uint64, every time.Duration) (due bool) {
	_ = fl.use(func() error {
		last := fl.swept().Load()
		due = (last == 0 || now-last >= uint64(every)) && fl.swept().CompareAndSwap(last, max(now, 1)) && last != 0
		return nil
	})
	return due
}

// Removed returns how many records sweepers have removed. It reports false if that cannot be told.
func (fl *Floor) Removed() (n uint64, ok bool) {
	err := fl.use(func() error {
		n = fl.removals().Load()
		return nil
	})
	return n, err == nil
}

// Highest returns the durable floor: no token above it was ever handed out.
func (fl *Floor) Highest() (token uint64, err error) {
	err = fl.use(func() error {
		token = fl.durable().Load()
		return nil
	})
	return token, err
}

// Forget is called before a record is removed that has reached fence: those made later begin above it, and everybody
// who has the record open sees that it may be gone.
func (fl *Floor) Forget(fence uint64) error {
	return fl.use(func() error {
		raiseWord(fl.base(), fence)
		fl.removals().Add(1)
		return nil
	})
}

// Close unmaps and closes the floor.
func (fl *Floor) Close() error { return errors.Join(fl.Unmap(), fl.File.Close()) }

// raiseWord sets w to value unless it is higher.
func raiseWord(w *atomic.Uint64, value uint64) {
	for {
		seen := w.Load()
		if seen >= value || w.CompareAndSwap(seen, value) {
			return
		}
	}
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
