package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// The help has every store that Interlock has, in a form that opens it: what fails then is not the
// URL.
func TestHelpOfStores(t *testing.T) {
	t.Parallel()
	var told []string
	for _, k := range storeKinds {
		if !strings.Contains(storesHelp(), "  "+k.form+" ") {
			t.Errorf("the help does not have %s", k.form)
		}
		told = append(told, k.schemes...)
		storeURL := strings.Replace(k.form, "DIRECTORY", filepath.Join(t.TempDir(), "store"), 1)
		storeURL = strings.ReplaceAll(storeURL, "HOST:6379", "HOST")
		for n := 1; strings.Contains(storeURL, "HOST"); n++ {
			storeURL = strings.Replace(storeURL, "HOST", fmt.Sprintf("127.0.0.%d:1", n), 1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d, err := driver.OpenURL(ctx, storeURL)
		if errors.As(err, new(*driver.URLError)) {
			t.Errorf("%s, as %s: %v", k.form, storeURL, err)
		}
		if err == nil {
			_ = d.Close(t.Context())
		}
	}
	for _, scheme := range driver.Schemes() {
		if scheme != "mem" && !slices.Contains(told, scheme) {
			t.Errorf("the help does not have the scheme %s", scheme)
		}
	}
	for _, scheme := range told {
		if !slices.Contains(driver.Schemes(), scheme) {
			t.Errorf("the help has the scheme %s, which nobody opens", scheme)
		}
	}
	if found, err := os.ReadDir(filepath.Join("..", "..", filepath.FromSlash(strings.TrimPrefix(pages, "https://github.com/interlock-go/interlock/tree/main/")))); err != nil || len(found) < 10 {
		t.Errorf("the stores' pages: %d, %v", len(found), err)
	}
}
