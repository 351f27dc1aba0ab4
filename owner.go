package interlock

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// started is close to the start of this process: package initialisation.
var started = time.Now()

// process describes this process, without the owner's name. The system is asked once.
var process = sync.OnceValue(func() driver.Owner {
	o := driver.Owner{PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Start: started.Round(time.Second)}
	o.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	} else if id := os.Getuid(); id >= 0 { // in a container a user may have no entry
		o.User = strconv.Itoa(id)
	}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		o.Boot = strings.TrimSpace(string(boot))
	}
	return o
})

func defaultOwner() string {
	p := process()
	return fmt.Sprintf("%s/%s/%d", p.Host, p.Program, p.PID)
}

func ownerNamed(name string) driver.Owner {
	o := process()
	o.Name = name
	return o
}
