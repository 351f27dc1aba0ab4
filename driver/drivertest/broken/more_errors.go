package broken

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreErrors are faults about contexts and about what errors say.
var moreErrors = []Driver{
	{
		Name: "AcquireForEver", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Acquire does not look at its context.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				return s.acquire(s.l.endless(ctx), c)
			}}
		},
	},
	{
		Name: "ReleaseForEver", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Release does not look at its context.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				return s.Session.Release(s.l.endless(ctx), c)
			}}
		},
	},
	{
		Name: "RequeueForEver", Law: "Also_Requeue", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Requeue does not look at its context.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				return s.Session.(driver.Requeuer).Requeue(s.l.endless(ctx), old, next)
			}}
		},
	},
	{
		Name: "RenewForEver", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Renew does not look at its context.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				return s.Session.Renew(s.l.endless(ctx))
			}}
		},
	},
	{
		Name: "OpenForEver", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Open does not look at its context.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				return l.memory.Open(l.endless(ctx), spec)
			}}
		},
	},
	{
		Name: "CloseForEver", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Close of a session does not look at its context.",
		new: func() *fault {
			return &fault{close: func(s *session, ctx context.Context) error { return s.Session.Close(s.l.endless(ctx)) }}
		},
	},
	{
		Name: "WaitLingers", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Wait looks at its context every three seconds.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if err != nil && ctx.Err() != nil {
					s.l.linger(3 * time.Second)
				}
				return g, err
			}}
		},
	},
	{
		Name: "RenewLingers", Law: "Also_Contexts", Says: "after its context had ended: each call returns promptly when its context ends",
		Fault: "Renew that is not answered is back three seconds after its context's end.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if err != nil && ctx.Err() != nil {
					s.l.linger(3 * time.Second)
				}
				return r, err
			}}
		},
	},
	{
		Name: "AcquireWasNotSent", Law: "Also_Outcomes", Says: "the error of Acquire says that nothing was changed",
		Fault: "Acquire that was not answered says that it was not sent, and it was carried out.",
		new:   acquireSays(driver.ErrNotSent),
	},
	{
		Name: "AcquireWasRefused", Law: "Also_Outcomes", Says: `an Acquire with a context that had ended was not answered, and its error says that the outcome is known, "refused`,
		Fault: "Acquire that was not answered says that it was refused.",
		new:   acquireSays(driver.ErrRefused),
	},
	{
		Name: "AcquireWasGone", Law: "Also_Outcomes", Says: `an Acquire with a context that had ended was not answered, and its error says that the outcome is known, "claim gone`,
		Fault: "Acquire that was not answered says that the claim is gone.",
		new:   acquireSays(driver.ErrGone),
	},
	{
		Name: "AcquireWasLost", Law: "Also_Outcomes", Says: `an Acquire with a context that had ended was not answered, and its error says that the outcome is known, "session lost`,
		Fault: "Acquire that was not answered says that the session is lost.",
		new:   acquireSays(driver.ErrSessionLost),
	},
	{
		Name: "ReleaseWasNotSent", Law: "Also_Outcomes", Says: "the error of Release says that nothing was changed",
		Fault: "Release that was not answered says that it was not sent, and it was carried out.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				return held, unanswered(ctx, err, driver.ErrNotSent)
			}}
		},
	},
	{
		Name: "RequeueWasNotSent", Law: "Also_Outcomes", Says: "the error of Requeue says that nothing was changed",
		Fault: "Requeue that was not answered says that it was not sent, and it was carried out.",
		new: func() *fault {
			return &fault{requeue: func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
				g, held, err := s.Session.(driver.Requeuer).Requeue(ctx, old, next)
				return g, held, unanswered(ctx, err, driver.ErrNotSent)
			}}
		},
	},
	{
		Name:   "OpenWasNotSent",
		Breaks: "ErrNotSent: nothing was changed",
		Want: "hold the answer of an Open and look at the class of its error; but nobody sees a session without claims, and where " +
			"not even the greeting of a new connection was answered, it was not sent",
		Fault: "Open that was not answered says that it was not sent, and the session stands.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				s, err := l.memory.Open(ctx, spec)
				return s, unanswered(ctx, err, driver.ErrNotSent)
			}}
		},
	},
	{
		Name: "BreakWasRefused", Law: "Also_Outcomes", Says: `Break was not answered, and its error says that the outcome is known, "refused`,
		Fault: "Break whose context has ended says that it was refused.",
		new: breaking(func(l *layer, ctx context.Context, _ driver.Holder, b breakage) error {
			err := b.pass(l, ctx)
			if err != nil && ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", driver.ErrRefused, ctx.Err())
			}
			return err
		}),
	},
	{
		Name: "RenewWasLost", Law: "Also_Outcomes", Says: `Renew was not answered, and its error says that the outcome is known, "session lost`,
		Fault: "Renew that was not answered says that the session is lost.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				return r, unanswered(ctx, err, driver.ErrSessionLost)
			}}
		},
	},
	{
		Name: "RenewWasFine", Law: "Also_Contexts", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "Renew that was not answered is answered by the driver, with the whole time.",
		new: func() *fault {
			return &fault{renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
				r, err := s.Session.Renew(ctx)
				if err != nil && ctx.Err() != nil {
					return driver.Renewal{Valid: s.Session.Valid()}, nil
				}
				return r, err
			}}
		},
	},
	{
		Name: "ReleaseWasFine", Law: "Also_Contexts", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "Release that was not answered says that it is done and nothing was held.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				held, err := s.Session.Release(ctx, c)
				if err != nil && ctx.Err() != nil {
					return false, nil
				}
				return held, err
			}}
		},
	},
	{
		Name: "TryWasDenied", Law: "Also_Contexts", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "A try that was not answered is told as denied.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err != nil && ctx.Err() != nil && !c.Queue {
					return driver.Grant{}, nil
				}
				return g, err
			}}
		},
	},
	{
		Name: "AcquireWaits", Law: "Law02_Idempotence", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "An Acquire that was not answered is told as waiting.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if err != nil && ctx.Err() != nil && c.Queue {
					return driver.Grant{}, nil
				}
				return g, err
			}}
		},
	},
	{
		Name: "CancelledWaitIsGone", Law: "Also_Outcomes", Says: `a Wait that its context ended was not answered, and its error says that the outcome is known, "claim gone`,
		Fault: "A Wait whose context has ended says that the claim is gone, and it keeps its place.",
		new:   waitSays(driver.ErrGone),
	},
	{
		Name: "CancelledWaitIsBroken", Law: "Also_Outcomes", Says: `a Wait that its context ended was not answered, and its error says that the outcome is known, "broken`,
		Fault: "A Wait whose context has ended says that the claim was broken, and it keeps its place.",
		new:   waitSays(driver.ErrBroken),
	},
	{
		Name: "CancelledWaitIsLost", Law: "Also_Outcomes", Says: `a Wait that its context ended was not answered, and its error says that the outcome is known, "session lost`,
		Fault: "A Wait whose context has ended says that the session is lost.",
		new:   waitSays(driver.ErrSessionLost),
	},
	{
		Name: "CancelledWaitIsRefused", Law: "Also_Outcomes", Says: `a Wait that its context ended was not answered, and its error says that the outcome is known, "refused`,
		Fault: "A Wait whose context has ended says that it was refused.",
		new:   waitSays(driver.ErrRefused),
	},
	{
		Name: "CancelledWaitIsHeld", Law: "Also_Contexts", Says: "is told to be held while",
		Fault: "A Wait whose context has ended is no error, and says that the claim is held.",
		new: func() *fault {
			return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.Session.Wait(ctx, c)
				if err != nil && ctx.Err() != nil {
					return driver.Grant{Held: true}, nil
				}
				return g, err
			}}
		},
	},
	{
		Name: "OpenWasFine", Law: "Also_Contexts", Says: "was answered over a stalled wire: the harness does not stall, or the driver answers for",
		Fault: "Open that was not answered returns the session as if it was.",
		new: func() *fault {
			return &fault{opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
				s, err := l.memory.Open(ctx, spec)
				if err != nil && ctx.Err() != nil {
					return l.memory.Share().Open(context.WithoutCancel(ctx), spec)
				}
				return s, err
			}}
		},
	},
	{
		Name: "BreakWasFine", Law: "Also_Outcomes", Says: "Break was answered over a stalled wire",
		Fault: "Break that was not answered says that it is done.",
		new: breaking(func(l *layer, ctx context.Context, _ driver.Holder, b breakage) error {
			if err := b.pass(l, ctx); ctx.Err() == nil {
				return err
			}
			return nil
		}),
	},
	{
		Name: "EndedContextIsSent", Law: "Also_Outcomes", Says: "the error of Acquire with a context that had ended says that nothing was changed",
		Fault: "Acquire with a context that has ended says that it was not sent, and is sent.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if err := ctx.Err(); err != nil {
					late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Millisecond)
					defer cancel()
					_, _ = s.acquire(late, c)
					return driver.Grant{}, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "ErrorsAreRefusals", Law: "Also_Loss", Says: "Acquire in a session that the store ended answered error: refused by the store: session",
		Fault: "Acquire in a session that the store has ended is refused, as if its claim could not be kept.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				g, err := s.acquire(ctx, c)
				if errors.Is(err, driver.ErrSessionLost) {
					err = fmt.Errorf("%w: %s", driver.ErrRefused, err.Error())
				}
				return g, err
			}}
		},
	},
}

// unanswered is err, or says what is not known when ctx has ended.
func unanswered(ctx context.Context, err, says error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", says, ctx.Err())
	}
	return err
}

func acquireSays(says error) func() *fault {
	return func() *fault {
		return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.acquire(ctx, c)
			return g, unanswered(ctx, err, says)
		}}
	}
}

func waitSays(says error) func() *fault {
	return func() *fault {
		return &fault{wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.Session.Wait(ctx, c)
			return g, unanswered(ctx, err, says)
		}}
	}
}

// linger lets d pass, or less when the driver is closed.
func (l *layer) linger(d time.Duration) {
	select {
	case <-l.closed:
	case <-time.After(d):
	}
}
