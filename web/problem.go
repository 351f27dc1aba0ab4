package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// problem is a problem document of RFC 9457, and an error.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Line   *line  `json:"line,omitempty"` // of changed: as it is now, if the principal may read it

	allow string // of methods
	page  string // of the line
}

// problemPage explains each kind of problem.
const problemPage = "https://github.com/interlock-go/interlock/blob/main/docs/web.md#"

// Error implements error.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// kinds of problems, by the last part of their type.
var kinds = map[string]struct {
	status int
	title  string
}{
	"bad-request":     {http.StatusBadRequest, "The request is malformed"},
	"unauthenticated": {http.StatusUnauthorized, "No valid credential came with the request"},
	"forbidden":       {http.StatusForbidden, "Not allowed"},
	"cross-origin":    {http.StatusForbidden, "The request comes from another page"},
	"not-found":       {http.StatusNotFound, "There is no such page"},
	"no-store":        {http.StatusNotFound, "There is no such store"},
	"method":          {http.StatusMethodNotAllowed, "Another method is wanted"},
	"changed":         {http.StatusConflict, "The claim is no longer there, or another than was named"},
	"refused":         {http.StatusUnprocessableEntity, "The store refuses that"},
	"too-large":       {http.StatusRequestEntityTooLarge, "The request is too large"},
	"media-type":      {http.StatusUnsupportedMediaType, "Another type of content is wanted"},
	"wrong-host":      {http.StatusMisdirectedRequest, "This server is not known by that host"},
	"too-many":        {http.StatusTooManyRequests, "There are too many streams"},
	"internal":        {http.StatusInternalServerError, "The server failed"},
	"unsupported":     {http.StatusNotImplemented, "The store cannot do that"},
	"not-sent":        {http.StatusServiceUnavailable, "Nothing was done"},
	"uncertain":       {http.StatusGatewayTimeout, "The store did not answer"},
}

// problemOf returns a problem of a kind.
func problemOf(kind, format string, args ...any) *problem {
	k := kinds[kind]
	return &problem{Type: problemPage + kind, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
}

// kind returns the last part of the type.
func (p *problem) kind() string { return strings.TrimPrefix(p.Type, problemPage) }

// storeProblem returns the problem of a break that failed: it tells whether the claim may be
// broken.
func storeProblem(err error) *problem {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return problemOf("unsupported", "%v", err)
	case errors.Is(err, driver.ErrRefused):
		return problemOf("changed", "%v", err)
	case errors.Is(err, driver.ErrNotSent):
		return problemOf("not-sent", "%v", err)
	}
	return problemOf("uncertain", "%v", err)
}

// lookProblem returns the problem of a look that failed, as who may read it. Nothing was changed.
func lookProblem(err error, who Principal) *problem {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return problemOf("unsupported", "%s", who.reason(err))
	case errors.Is(err, driver.ErrRefused):
		return problemOf("refused", "%s", who.reason(err))
	}
	return problemOf("not-sent", "the store does not say how it stands: %s", who.reason(err))
}

// answerJSON answers by v.
func answerJSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client may have gone
	return nil
}
