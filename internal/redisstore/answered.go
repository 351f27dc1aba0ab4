package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// masterOf returns the address of the master of a replica, from its INFO.
func masterOf(info map[string]string) string {
	return net.JoinHostPort(info["master_host"], info["master_port"])
}

// replica returns the finding about a server that is a replica, from its INFO.
func replica(info map[string]string) driver.Finding {
	return driver.Finding{
		Code: "R15", Title: "role", Level: driver.LevelBad, Seen: "this server is a replica of " + masterOf(info),
		Why:  "it takes no writes, and what it knows of locks is old: no lock can be had",
		Mend: "name the master, redis://" + masterOf(info) + ", or the Sentinels that know it: redis+sentinel://; REPLICAOF NO ONE where this is to be the master",
	}
}

// Answered returns the error of an opening by a URL with this user. If a server has answered, the
// error gets a finding, as the doctor has it; it matches what err matches.
func Answered(err error, user *url.Userinfo) error {
	var answer *redisconn.Error
	if !errors.As(err, &answer) || errors.As(err, new(*driver.FindingError)) {
		return err
	}
	name := user.Username()
	if name == "" {
		name = "default"
	}
	f := driver.Finding{
		Title: "opening", Level: driver.LevelBad, Seen: "the server answered: " + answer.Text,
		Why: "the store cannot be used as it is: no lock can be had", Mend: "as the server says",
	}
	says := func(text string) bool { return strings.Contains(answer.Text, text) }
	switch {
	case answer.Code == "NOAUTH":
		f.Title, f.Seen = "login", "the server wants a password, and the URL has none"
		f.Mend = "name it in the URL: redis://:PASSWORD@HOST:PORT for requirepass, redis://USER:PASSWORD@HOST:PORT for a user of ACL SETUSER"
	case answer.Code == "WRONGPASS", says("invalid password"):
		f.Title, f.Seen = "login", fmt.Sprintf("the server does not accept the password of the user %s, or has no such user that is on", name)
		f.Mend = fmt.Sprintf("the right one in the URL; ACL GETUSER %s says whether the user is on, and ACL SETUSER %[1]s on '>PASSWORD' gives it another password", name)
	case says("without any password"):
		f.Title, f.Seen = "login", "the URL has a password, and the server has none for the user "+name
		f.Mend = "a URL without a password, or CONFIG SET requirepass PASSWORD on the server"
	case answer.Code == "NOPERM":
		f.Title, f.Seen = "rights", "the user "+name+" lacks a right: "+answer.Text
		f.Mend = fmt.Sprintf("ACL SETUSER %s with the rights that ACL of the lock's package returns", name)
	case answer.Code == "LOADING":
		f.Title, f.Seen = "loading", "the server is still reading what it has on disk"
		f.Mend = "wait until it has: INFO persistence says by loading_eta_seconds how long that takes"
	case answer.Code == "BUSY", answer.Code == "UNKILLABLE":
		f.Code, f.Title, f.Seen = "R16", "busy", "the server is busy with another client's script"
		f.Mend = "SCRIPT KILL, which ends one that has written nothing; else wait, or SHUTDOWN NOSAVE"
	case says("max number of clients"):
		f.Code, f.Title, f.Seen = "R10", "clients", "the server has no room for another connection (maxclients)"
		f.Mend = "CONFIG SET maxclients to more, with ulimit -n of the server above it; CLIENT LIST says who has them"
	case says("No such master with that name"):
		f.Title, f.Seen = "sentinels", "the Sentinels watch no master of the name that the URL ends with"
		f.Mend = "a name that SENTINEL MASTERS says: redis-cli -h HOST -p 26379 SENTINEL MASTERS"
	}
	return &driver.FindingError{Finding: f, Err: err}
}
