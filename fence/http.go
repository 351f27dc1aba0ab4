package fence

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Header is the HTTP header that carries a token, as a decimal number: of the sender in a request, and in the answer
// to a stale one (status 412) the highest token seen.
const Header = "Fencing-Token"

// errHeader is matched by the errors of a header that is there and makes no sense.
var errHeader = errors.New("fence: malformed header " + Header)

// SetHeader puts token into the header of a request about to be sent. The request is only worth sending with a
// token: errors match [ErrNoToken] and [ErrRange], and then the header is unchanged.
func SetHeader(h http.Header, token uint64) error {
	if err := Valid(token); err != nil {
		return err
	}
	h.Set(Header, strconv.FormatUint(token, 10))
	return nil
}

// FromHeader returns the token of a request. Its error matches [ErrNoToken] if there is none or it is 0 and
// [ErrRange] if it is above [Max]; two tokens, or what is no number, are errors as well.
func FromHeader(h http.Header) (uint64, error) {
	values := h.Values(Header)
	if len(values) == 0 {
		return 0, fmt.Errorf("%w; the request has no header %s", ErrNoToken, Header)
	}
	token, err := strconv.ParseUint(values[0], 10, 64)
	switch {
	case len(values) > 1:
		return 0, fmt.Errorf("%w: %d of them, want one", errHeader, len(values))
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrRange
	case err != nil:
		return 0, fmt.Errorf("%w: %q, want a decimal number", errHeader, values[0])
	}
	return token, Valid(token)
}

// WriteError answers a request that a guard refused: 412 (Precondition Failed) with the highest token seen in
// [Header] for [ErrStale], 428 (Precondition Required) for [ErrNoToken], 400 for any other bad token. It is for
// handlers that keep their own mark, such as a [Table] in the transaction of the effect, and call it with errors of
// [FromHeader] and of the guard; other errors are answered with 500 and not shown.
func WriteError(w http.ResponseWriter, err error) {
	var stale *StaleError
	switch {
	case errors.As(err, &stale):
		w.Header().Set(Header, strconv.FormatUint(stale.Highest, 10))
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, ErrNoToken):
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
	case errors.Is(err, ErrRange), errors.Is(err, errHeader):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

// Handler guards next with the mark that resource picks for a request; nil picks none and answers 404.
// A request with a token claims, whatever its method, so a holder's GET is its claim. One without a token
// may read (GET, HEAD, OPTIONS) and is answered by [WriteError] otherwise. A request that may write runs inside
// [Mark.Do], one at a time for each mark.
//
// A mark lasts as long as the process. A service whose state outlives it keeps its tokens in the same place as that
// state, with [FromHeader], a guard such as [Table.Do], and [WriteError].
func Handler(resource func(*http.Request) *Mark, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mark := resource(r)
		if mark == nil {
			http.NotFound(w, r)
			return
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if reads && len(r.Header.Values(Header)) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		token, err := FromHeader(r.Header)
		if err != nil {
			WriteError(w, err)
			return
		}
		serve := func() error { next.ServeHTTP(w, r); return nil }
		if reads {
			if err = mark.Claim(token); err == nil {
				_ = serve()
			}
		} else {
			err = mark.Do(token, serve)
		}
		if err != nil {
			WriteError(w, err)
		}
	})
}
