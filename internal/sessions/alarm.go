package sessions

import "github.com/interlock-go/interlock/driver"

// Alarm is how a session reports what cannot wait for the next renewal: see driver.LossNotifier and
// driver.Nudger.
type Alarm struct {
	lost  chan driver.Loss
	nudge Signal
}

// NewAlarm returns an alarm.
func NewAlarm() Alarm { return Alarm{make(chan driver.Loss, 64), NewSignal()} }

// Lost implements driver.LossNotifier.
func (a Alarm) Lost() <-chan driver.Loss { return a.lost }

// Nudge implements driver.Nudger.
func (a Alarm) Nudge() <-chan struct{} { return a.nudge }

// Lose reports a loss. If too many are not read yet, it asks for a renewal, which reports it.
func (a Alarm) Lose(l driver.Loss) {
	select {
	case a.lost <- l:
	default:
		a.Hurry()
	}
}

// Hurry asks for a renewal now.
func (a Alarm) Hurry() { a.nudge.Give() }
