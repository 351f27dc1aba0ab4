package zk

import (
	"crypto/md5" //nolint:gosec // the mechanism has it
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Login is who the client is to the servers.
type Login struct {
	User, Password string
	SASL           bool // by DIGEST-MD5; otherwise by ZooKeeper's scheme digest, which sends the password
}

const (
	opAuth = 100
	opSASL = 102

	authXid = -4
)

// login logs in over a connection that nobody else uses yet.
func (l Login) login(nc net.Conn) error {
	if l.User == "" {
		return nil
	}
	if l.SASL {
		return l.sasl(nc)
	}
	_, err := exchange(nc, opAuth, record{}.int(0).string("digest").string(l.User+":"+l.Password))
	return err
}

// exchange sends a request and returns the rest of its answer.
func exchange(nc net.Conn, op int32, body record) (*reader, error) {
	if _, err := nc.Write(append(record{}.int(int32(8+len(body))).int(authXid).int(op), body...)); err != nil {
		return nil, err
	}
	b, err := readFrame(nc)
	if errors.Is(err, io.EOF) {
		return nil, AuthFailed
	}
	if err != nil {
		return nil, err
	}
	r := &reader{b: b}
	r.int()
	r.long()
	if code := Code(r.int()); code != 0 {
		return nil, code
	}
	return r, nil
}

// sasl logs in by the mechanism DIGEST-MD5 of RFC 2831, with mutual authentication, as ZooKeeper
// has it: the server begins, and nothing is encrypted by it.
func (l Login) sasl(nc net.Conn) error {
	r, err := exchange(nc, opSASL, record{}.bytes(nil))
	if err != nil {
		return err
	}
	challenge := directives(r.string())
	if challenge["nonce"] == "" || challenge["algorithm"] != "md5-sess" {
		return fmt.Errorf("zookeeper: %w: the server does not offer SASL's DIGEST-MD5, and Kerberos (GSSAPI) is not supported", driver.ErrRefused)
	}
	var random [16]byte
	rand.Read(random[:])
	nonce, answer := hex.EncodeToString(random[:]), saslAnswer{l, challenge["realm"], challenge["nonce"], ""}
	answer.cnonce = nonce
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	text := fmt.Sprintf(`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=%s,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth`,
		quote(l.User), quote(answer.realm), quote(answer.nonce), saslCount, nonce, saslURI, answer.of("AUTHENTICATE:"+saslURI))
	if r, err = exchange(nc, opSASL, record{}.string(text)); err != nil {
		return err
	}
	if proof := directives(r.string())["rspauth"]; subtle.ConstantTimeCompare([]byte(proof), []byte(answer.of(":"+saslURI))) == 0 {
		return fmt.Errorf("zookeeper: %w: the server does not know the password of user %q", driver.ErrRefused, l.User)
	}
	return nil
}

const (
	saslURI   = "zookeeper/zk-sasl-md5"
	saslCount = "00000001" // of uses of the nonce
)

// saslAnswer makes proofs of knowing the password.
type saslAnswer struct {
	Login
	realm, nonce, cnonce string
}

func (a saslAnswer) of(what string) string {
	sum := func(s string) string { b := md5.Sum([]byte(s)); return string(b[:]) } //nolint:gosec // the mechanism has it
	secret := sum(a.User+":"+a.realm+":"+a.Password) + ":" + a.nonce + ":" + a.cnonce
	return hex.EncodeToString([]byte(sum(hex.EncodeToString([]byte(sum(secret))) + ":" + a.nonce + ":" + saslCount + ":" + a.cnonce + ":auth:" + hex.EncodeToString([]byte(sum(what))))))
}

// directives reads name=value,name="value".
func directives(s string) map[string]string {
	all := map[string]string{}
	for s != "" {
		name, rest, _ := strings.Cut(s, "=")
		var value strings.Builder
		quoted := strings.HasPrefix(rest, `"`)
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(rest); i++ {
			if quoted && rest[i] == '\\' && i+1 < len(rest) {
				i++
			} else if quoted && rest[i] == '"' || !quoted && rest[i] == ',' {
				break
			}
			value.WriteByte(rest[i])
		}
		_, s, _ = strings.Cut(rest[min(i, len(rest)):], ",")
		all[strings.TrimSpace(name)] = value.String()
	}
	return all
}
