//go:build unix

package early

import (
	"os"

	_ "github.com/interlock-go/interlock/filelock" // the embedded store
	"github.com/interlock-go/interlock/internal/cli"
)

func init() { cli.RunEarly(os.Args[1:]) }
