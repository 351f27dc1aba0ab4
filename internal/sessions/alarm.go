package sessions

// Alarm is how a session tells the core what cannot wait for the next renewal: see driver.LossNotifier and driver.Nudger.
type Alarm struct {
	lost  chan string
	nudge Signal
}

// NewAlarm returns an alarm.
func NewAlarm() Alarm { return Alarm{make(chan string, 64), NewSignal()} }

// Lost implements driver.LossNotifier.
func (a Alarm) Lost() <-chan string { return a.lost }

// Nudge implements driver.Nudger.
func (a Alarm) Nudge() <-chan struct{} { return a.nudge }

// Lose says that a claim is lost. Where too many are at once, the renewal says it.
func (a Alarm) Lose(id string) {
	select {
	case a.lost <- id:
	default:
		a.Hurry()
	}
}

// Hurry asks for a renewal now.
func (a Alarm) Hurry() { a.nudge.Give() }
