package wire

// Direction is which way bytes go.
type Direction uint8

// The two ways through a wire, and both.
const (
	Requests Direction = 1 << iota // from the clients to the server
	Replies                        // from the server to the clients
	Both     = Requests | Replies
)

func (d Direction) String() string {
	switch d {
	case Requests:
		return "requests"
	case Replies:
		return "replies"
	case Both:
		return "both"
	}
	return "neither"
}
