package redisstore

import (
	"encoding/json"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Reader decodes the info of the claims of one listing. Decoding takes longer than all else that is
// done with a claim, and the thousands of claims of a listing are of a few sessions: equal owners
// are decoded once, and so is equal text behind them. All that was decoded is kept, so a Reader is
// for one listing. The zero value is ready, and nil keeps nothing. It is not safe for concurrent
// use.
type Reader struct {
	owners map[string]driver.Owner // by their JSON
	rests  map[string]Info         // by what stands behind the owner
}

// Describe is the function Describe, with what r has decoded before.
func (r *Reader) Describe(h *driver.Holder, text string) (channel string) {
	if r == nil {
		return Describe(h, text)
	}
	raw, rest := cutOwner(text)
	owner, known := r.owners[raw]
	if !known { // only of what was decoded before is it known that it is a whole value
		var i Info
		if json.Unmarshal([]byte(text), &i) != nil {
			return ""
		}
		i.Tell(h)
		if raw != "" && string(i.Owner) == raw {
			if r.owners == nil {
				r.owners, r.rests = map[string]driver.Owner{}, map[string]Info{}
			}
			r.owners[raw] = h.Owner
		}
		return i.Channel
	}
	i, known := r.rests[rest]
	if !known {
		var read Info
		if json.Unmarshal([]byte("{"+strings.TrimPrefix(rest, ",")), &read) != nil {
			return ""
		}
		i, r.rests[rest] = read, read
	}
	h.Owner = owner
	i.Tell(h)
	return i.Channel
}

// cutOwner cuts a text that Append wrote behind the owner, which is an object: at the brace,
// outside of strings, that closes the first one. Of a text in another form both are "".
func cutOwner(text string) (raw, rest string) {
	body, ours := strings.CutPrefix(text, `{"o":{`)
	depth, quoted := 1, false
	for i := 0; ours && i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth > 0 {
			continue
		}
		raw, rest = text[len(`{"o":`):len(`{"o":{`)+i+1], body[i+1:]
		if strings.HasPrefix(rest, "}") || strings.HasPrefix(rest, `,"`) { // so that it is an object with a brace before it
			return raw, rest
		}
		break
	}
	return "", ""
}
