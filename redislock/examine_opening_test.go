package redislock_test

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A server that answers and cannot be had locks from is no silent one: what is wrong is a finding,
// for whoever opens it as well.
func TestDoctor_Opening(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, append(slices.Clone(redistest.Durable), "--lua-time-limit", "1")...)
	as := func(name, password string) string {
		return (&url.URL{Scheme: "redis", User: url.UserPassword(name, password), Host: s.Addr()}).String()
	}
	examinetest.Refused(t, "a user that there is not", as("app", "secret"), examinetest.Levels{"login": examinetest.Bad})
	s.MustDo(t, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
	f := examinetest.Refused(t, "a wrong password", as("app", "other"), examinetest.Levels{"login": examinetest.Bad})
	if !strings.Contains(f.Mend, "ACL SETUSER app on") {
		t.Errorf("%+v, want how to give this user another one", f)
	}
	closed := servertest.Redis(t)
	closed.MustDo(t, "ACL", "SETUSER", "default", "off")
	examinetest.Refused(t, "no password", closed.URL(), examinetest.Levels{"login": examinetest.Bad})

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Do("EVAL", "while true do end", "0")
	}()
	eventually(t, "it is busy", func() bool {
		_, err := s.Do("PING")
		return err != nil && strings.Contains(err.Error(), "BUSY")
	})
	examinetest.Refused(t, "a script that does not end", s.URL(), examinetest.Levels{"busy": examinetest.Bad})
	s.MustDo(t, "SCRIPT", "KILL")
	<-ended
}

// Whose turn it is to be a master is told before a lock is asked for.
func TestDoctor_OpeningAReplica(t *testing.T) {
	t.Parallel()
	s, other := servertest.Redis(t), servertest.Redis(t)
	other.MustDo(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(s.Port()))
	f := examinetest.Refused(t, "a replica", other.URL(), examinetest.Levels{"role": examinetest.Bad})
	if !strings.Contains(f.Mend, "redis://"+s.Addr()) {
		t.Errorf("%+v, want its master", f)
	}
	sentinels := servertest.Sentinel(t)
	wrong := strings.TrimSuffix(sentinels.URL(), path.Base(sentinels.URL())) + "nobody"
	examinetest.Refused(t, "a name that no Sentinel knows", wrong, examinetest.Levels{"sentinels": examinetest.Bad})
	if _, err := driver.OpenURL(t.Context(), "redis://127.0.0.1:1"); err == nil || errors.As(err, new(*driver.FindingError)) {
		t.Errorf("%v, want no finding of a server that there is not", err)
	}
}
