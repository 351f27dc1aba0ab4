package broken

import (
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver/drivertest"
)

// gap is a broken driver that no law convicts.
type gap struct {
	name   string // of the driver
	breaks string // what it breaks, as the contract says it
	want   string // what a law would have to do
}

// unnoticed are known gaps of the suite.
var unnoticed = []gap{
	{
		"StripsAccents",
		"A store keeps, for every name, one line",
		"hold a name beside the same one with an accent",
	},
	{
		"ThreeBytes",
		"A store keeps, for every name, one line",
		"hold two names together that differ in a character of four bytes",
	},
	{
		"TrimsBefore",
		"A store keeps, for every name, one line",
		"hold a name beside the same one with a blank behind its last slash",
	},
	{
		"TrimsLineEnd",
		"A store keeps, for every name, one line",
		"hold a name beside the same one with a line feed at its end",
	},
	{
		"HashesTo32Bits",
		"A store keeps, for every name, one line",
		"hold two names together whose usual hashes of 32 bits are equal",
	},
	{
		"HashesAsJava",
		"A store keeps, for every name, one line",
		"hold two names together whose usual hashes of 32 bits are equal, as Aa and BB",
	},
	{
		"CutsAt4000",
		"A store keeps, for every name, one line",
		"hold two names of more than 4000 bytes that differ in the last one, or be refused",
	},
	{
		"ListsLike",
		"yields the lines whose names begin with prefix",
		"list by a prefix with _ and % beside a name that such a pattern matches",
	},
	{
		"ListsGlob",
		"yields the lines whose names begin with prefix",
		"list by a prefix with ? and * beside a name that such a pattern matches",
	},
	{
		"ListsWithoutCase",
		"yields the lines whose names begin with prefix",
		"list by a prefix beside a name that begins with it in another case",
	},
	{
		"ListsNamesOnly",
		"Claims []Holder // in order, holders and waiters",
		"compare what Lines says of a line with what Line says",
	},
	{
		"ListsHolders",
		"Claims []Holder // in order, holders and waiters",
		"compare what Lines says of a line with waiters with what Line says",
	},
	{
		"ListsTheEmpty",
		"yields the lines whose names begin with prefix and that have claims",
		"list after a name was released, and want it gone",
	},
	{
		"CloseResetsTokens",
		"tokens grow until the store restarts or forgets",
		"take the token of who comes after the Close of a session that held the name",
	},
	{
		"DeniedHaveTokens",
		"Fence is the lowest of the Stride tokens that this grant reserved",
		"want no token in the answer to a try that is denied",
	},
	{
		"EmptyShowsNoToken",
		"the highest token reserved so far; 0 where the store keeps no counter for a name",
		"look at Line.Fence of a name that was held and is free",
	},
	{
		"Limits16Bits",
		"1 ≤ Weight ≤ Limit ≤ All",
		"hold permits of a semaphore of more than 65535",
	},
	{
		"SumsOverflow",
		"A claim is held when its weight and the weights of all claims ahead of it add up to at most its limit.",
		"stand with two permits of All in a line",
	},
	{
		"TenReaders",
		"Readers therefore share",
		"hold one name with a hundred readers",
	},
	{
		"HundredReaders",
		"Readers therefore share",
		"hold one name with a thousand readers",
	},
	{
		"KindForEver",
		"A claim that does not go with those that stand there is refused",
		"use a free name as a lock that was a semaphore, and the other way",
	},
	{
		"FirstTTLForAll",
		"what was given is Session.Valid",
		"open two sessions of one driver with different times, and let the one with the longer time expire",
	},
	{
		"RenewsTheOthers",
		"claims of a session that is not renewed go after its time",
		"let one session of a driver expire while another one of it is renewed",
	},
	{
		"ValidRunsDown",
		"Valid is how long the session can be trusted from the start of Open on",
		"ask Valid again later, before the first Renew, and want the same",
	},
	{
		"OneOwnerForAll",
		"Owner Owner // who, for people",
		"look at the claims of two sessions of one driver with different owners",
	},
	{
		"CloseAfterWait",
		"also while other calls are under way",
		"close a session while a Wait of it is under way, and bound how long that takes",
	},
	{
		"CloseEndsOtherWaits",
		"ErrSessionLost: the session is over, and all its claims with it. Final.",
		"close one session of a driver while a Wait of another one is under way",
	},
	{
		"AsksAfterClose",
		"Close releases every claim of the session, handing over at once, and ends it.",
		"count the calls of a driver for some times-to-live after its sessions were closed",
	},
	{
		"PoolOfTen",
		"It never queues behind claims",
		"renew a session of which a hundred Waits are under way",
	},
	{
		"WaitsBehindWait",
		"All methods may be called concurrently",
		"have two Waits of a session under way, and let the second one's claim in first",
	},
	{
		"OpensBehindWait",
		"All methods may be called concurrently",
		"open a session of a driver while a Wait of another of its sessions is under way",
	},
	{
		"OneRenewAtATime",
		"All methods may be called concurrently, Renew at any time",
		"call Renew twice at a time and want two answers",
	},
	{
		"RenewHoldsAcquire",
		"Each call returns promptly when its context ends.",
		"stall a Renew under a long context and call Acquire under a short one beside it",
	},
	{
		"BreaksOnce",
		"With now the next is let in at once",
		"break a held claim and break it again with now",
	},
	{
		"SecondMarkFails",
		"if it still is the claim of that public id and fence",
		"break a held claim twice, and want no error",
	},
	{
		"RequeuedBrokenWasHeld",
		"It reports of old what Release would",
		"requeue a claim that was broken and not released, and want that it was not held",
	},
	{
		"NudgesOnce",
		"A held one is marked and its owner nudged",
		"break two claims of one session, one after the other, and want a nudge each time",
	},
	{
		"DeafToCloseOfSharers",
		"all waiters are told, none has to ask",
		"close a session while Waits of readers and permits are under way, and bound the time until they tell",
	},
	{
		"DeafToBreak",
		"all waiters are told, none has to ask",
		"break the holder with now while a Wait is under way, and bound the time until that tells",
	},
	{
		"DeafToRequeue",
		"all waiters are told, none has to ask",
		"requeue the holder while a Wait is under way, and bound the time until that tells",
	},
	{
		"DeafToRequeueOfSharers",
		"all waiters are told, none has to ask",
		"requeue a reader or a permit while a Wait is under way, and bound the time until that tells",
	},
	{
		"DeafToGivingUp",
		"all waiters are told, none has to ask",
		"release a waiting writer between readers while the Wait of those behind it is under way",
	},
	{
		"DeafToGivingUpOfPermits",
		"all waiters are told, none has to ask",
		"release a large permit that waits while the Wait of a smaller one behind it is under way",
	},
	{
		"DeafToGivingUpOfWriters",
		"all waiters are told, none has to ask",
		"release a waiting writer between readers while the Wait of those behind it is under way",
	},
	{
		"DeafToWaitingBroken",
		"all waiters are told, none has to ask",
		"break a waiting writer between readers while the Wait of those behind it is under way",
	},
	{
		"LockDelay",
		"Close releases every claim of the session, handing over at once",
		"close a session while a Wait for its name is under way, and bound the time until that tells",
	},
	{
		"WaitOfTheHeldHangs",
		"Acquire and Wait return that state, any number of times, until Release.",
		"call Wait of a claim that Acquire answered as held, and want that at once",
	},
	{
		"SecondWaitHangs",
		"Acquire and Wait return that state, any number of times, until Release.",
		"call Wait again after it told the grant, and want the same at once",
	},
	{
		"WaitersByName",
		"all waiters are told, none has to ask",
		"have two claims of one session wait for one name with a Wait under way each, and grant the first",
	},
	{
		"WaitersBySession",
		"all waiters are told, none has to ask",
		"have two claims of one session wait for two names with a Wait under way each, and grant the first",
	},
	{
		"WaitersByNameOfDriver",
		"all waiters are told, none has to ask",
		"have two sessions of one driver wait for one name with a Wait under way each, and grant the first",
	},
	{
		"WaitsOneTime",
		"a waiting one keeps its place as long as the store sees its process",
		"wait for many times-to-live in a session that is renewed",
	},
	{
		"UnnoticedWasNotHeld",
		"It reports whether c was held until now",
		"release a claim that was granted before its Wait was called, and want that it was held",
	},
	{
		"ReleasesItsOwnOnly",
		"who knows it can release the claim",
		"release a claim by its ID from another session",
	},
	{
		"RequeueOfTheBrokenFails",
		"if old is gone, next is acquired all the same",
		"requeue a claim that was broken",
	},
	{
		"RequeueKeepsWeight",
		"Requeue releases old and acquires next",
		"requeue a permit with another weight, or a reader as a writer",
	},
	{
		"RequeueKeepsNote",
		"Requeue releases old and acquires next",
		"requeue with another note and look at the line",
	},
	{
		"RequeueRenewsNothing",
		"Answered without an error it renews next as Acquire does.",
		"requeue in a session that nobody has renewed for its time, and see the claim stand",
	},
	{
		"RequeueWithoutQueueStays",
		"A claim without Queue that cannot be held leaves nothing behind",
		"requeue a holder in front of a waiter with a next claim that may not queue",
	},
	{
		"RequeueOfWaiterKeepsIt",
		"Requeue releases old and acquires next",
		"requeue a claim that waits and count the line",
	},
	{
		"RequeueTwiceIsTwo",
		"Every call is idempotent by it",
		"hold the answer of a Requeue, repeat it, and count the line",
	},
	{
		"RenewOfTheRequeued",
		"claims that are no longer in line although nobody here released them",
		"renew after a Requeue, and want nothing lost",
	},
	{
		"RenewTellsOnce",
		"those stand in line until they are released or their time is over",
		"renew twice after a Break, and want the claim named each time",
	},
	{
		"RenewNamesReleased",
		"claims that are no longer in line although nobody here released them",
		"renew after a Release, and want nothing lost",
	},
	{
		"RenewNamesDenied",
		"claims that are no longer in line although nobody here released them",
		"renew after a try that was denied, and want nothing lost",
	},
	{
		"RenewNamesStrangers",
		"who knows it can release the claim",
		"renew a session after a claim of another one was lost, and want nothing lost",
	},
	{
		"LossesToAll",
		"who knows it can release the claim",
		"want that Lost names claims of its own session alone",
	},
	{
		"LossOfWaiters",
		"whose store says by itself that a claim is gone or broken",
		"want that Lost does not name a claim that waits and stands",
	},
	{
		"BreakClosesLosses",
		"the channel is closed when the session is lost as a whole",
		"break one of two claims and want that Lost stays open",
	},
	{
		"TimeoutClosesLosses",
		"the channel is closed when the session is lost as a whole",
		"stall a Renew until its context ends and want that Lost stays open",
	},
	{
		"ReleaseClosesLosses",
		"the channel is closed when the session is lost as a whole",
		"release the last claim of a session and want that Lost stays open",
	},
	{
		"GoneIsWaiting",
		"it answers ErrBroken or ErrGone, and so does Wait",
		"call Wait of a claim that has expired",
	},
	{
		"WaitOfTheGoneIsUnknown",
		"it answers ErrBroken or ErrGone, and so does Wait",
		"call Wait of a claim that has expired and look at the class of its error",
	},
	{
		"BrokenWaiterIsLost",
		"Final for the claim, not for its session.",
		"want that the error of a broken claim does not match ErrSessionLost",
	},
	{
		"GoneWaiterComesAgain",
		"A claim that was in line, as far as this driver was told, and is gone is not put there again",
		"let a claim expire while it waits and ask for it again",
	},
	{
		"ShowsNoBroken",
		"Held, Broken bool",
		"look at a line with a claim that is marked",
	},
	{
		"ShowsBrokenAsGone",
		"A held one is marked",
		"look at a line with a claim that is marked, and want it there",
	},
	{
		"NoteIsOneLine",
		"Note string // of the holder, for people",
		"look at the claim of a note of two lines",
	},
	{
		"NoteCutAt64",
		"Note string // of the holder, for people",
		"look at the claim of a long note",
	},
	{
		"PassesOf8Bits",
		"how often this client has passed the name on inside its process so far",
		"look at a claim of a thousand passes",
	},
	{
		"ShowsOwnerShort",
		"MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		"look at the claim of an owner with all fields",
	},
	{
		"OwnerLosesTime",
		"Stores carry its JSON form as opaque bytes.",
		"look at the claim of an owner with all fields",
	},
	{
		"OwnerOf255Bytes",
		"MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		"look at the claim of an owner of MaxOwner bytes",
	},
	{
		"OwnerOf512Fails",
		"MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.",
		"open a session with an owner of MaxOwner bytes",
	},
	{
		"SinceArrival",
		"when it was granted, or when it entered the line while it waits",
		"look at a claim that was granted after a wait",
	},
	{
		"SinceNow",
		"when it was granted, or when it entered the line while it waits",
		"look twice at a claim that stands, and want the same Since",
	},
	{
		"UntilStands",
		"when it goes unless it is renewed",
		"look at a claim before and after a Renew",
	},
	{
		"ShowsTenClaims",
		"Claims []Holder // in order, holders and waiters",
		"look at a line of a hundred claims",
	},
	{
		"ShowsTheExpired",
		"when it goes unless it is renewed",
		"look at a line after the time of its only claim is over",
	},
	{
		"WatchStopsAfterTen",
		"until the caller stops, ctx ends or an error was yielded",
		"watch a hundred changes",
	},
	{
		"WatchMissesMarks",
		"Changes may be merged; the last one is always shown.",
		"watch a line while its holder is broken without now",
	},
	{
		"WatchMissesExpiry",
		"Changes may be merged; the last one is always shown.",
		"watch a line whose only claim expires",
	},
	{
		"WatchShowsNoTokens",
		"Watch yields the line of name now and after every change",
		"compare what Watch shows with what Line shows",
	},
	{
		"CloseForEver",
		"Each call returns promptly when its context ends.",
		"stall the wire under a Close of a session whose context ends",
	},
	{
		"RenewLingers",
		"Each call returns promptly when its context ends.",
		"measure how long after its context's end a stalled Renew is back, by less than seconds",
	},
	{
		"AcquireWasNotSent",
		"ErrNotSent: nothing was changed",
		"let a request through, hold its answer, and want an error that matches no outcome",
	},
	{
		"AcquireWasRefused",
		"ErrRefused: the store changed nothing",
		"let a request through, hold its answer, and want an error that matches no outcome",
	},
	{
		"AcquireWasGone",
		"ErrGone: this claim is no longer in line",
		"let a request through, hold its answer, and want an error that matches no outcome",
	},
	{
		"AcquireWasLost",
		"ErrSessionLost: the session is over, and all its claims with it. Final.",
		"let a request through, hold its answer, and want an error that matches no outcome",
	},
	{
		"ReleaseWasNotSent",
		"ErrNotSent: nothing was changed",
		"hold the answer of a Release and look at the class of its error",
	},
	{
		"RequeueWasNotSent",
		"ErrNotSent: nothing was changed",
		"hold the answer of a Requeue and look at the class of its error",
	},
	{
		"OpenWasNotSent",
		"ErrNotSent: nothing was changed",
		"hold the answer of an Open and look at the class of its error",
	},
	{
		"BreakWasRefused",
		"otherwise it changes nothing and returns an error that matches ErrRefused",
		"hold the answer of a Break that hits, and want an error that matches no outcome",
	},
	{
		"RenewWasLost",
		"ErrSessionLost: the session is over, and all its claims with it. Final.",
		"hold the answer of a Renew, look at the class of its error, and go on with the session",
	},
	{
		"CancelledWaitIsGone",
		"When it returns an error the claim keeps its place unless the error says otherwise.",
		"cancel a Wait and want an error that matches no outcome",
	},
	{
		"CancelledWaitIsBroken",
		"When it returns an error the claim keeps its place unless the error says otherwise.",
		"cancel a Wait and want an error that matches no outcome",
	},
	{
		"CancelledWaitIsLost",
		"When it returns an error the claim keeps its place unless the error says otherwise.",
		"cancel a Wait and want an error that matches no outcome",
	},
	{
		"CancelledWaitIsRefused",
		"When it returns an error the claim keeps its place unless the error says otherwise.",
		"cancel a Wait and want an error that matches no outcome",
	},
	{
		"BreakWasFine",
		"Every other error means that the outcome is unknown",
		"stall the wire of who breaks, and want an error",
	},
	{
		"EndedContextIsSent",
		"ErrNotSent: nothing was changed",
		"call Acquire with a context that has ended, and see from another process that the name is free",
	},
	{
		"TraitsChange",
		"Traits says what the store, as it was opened, promises. It does not change afterwards.",
		"compare Traits at the end of a law with those at its start",
	},
	{
		"ClaimsSmallTTL",
		"what Spec.TTL may be, else it is clamped or refused",
		"open a session with MinTTL and want it to be given",
	},
	{
		"ClaimsAnyTTL",
		"what Spec.TTL may be, else it is clamped or refused",
		"open a session with a very long time where there is no MaxTTL, and want it to be given",
	},
	{
		"ClaimsLongTTL",
		"what Spec.TTL may be, else it is clamped or refused",
		"open a session with MaxTTL and want it to be given",
	},
	{
		"ClaimsSurvivalOfProcess",
		"the end of every process that acts for the session; they then go by TTL",
		"kill a process whose store says that its claims survive it, and see others kept out until the time is over",
	},
}

// Each driver of the table is broken, and no law says so yet. One that a law convicts each time leaves the table, and has that law
// and what the report says written beside its name; by chance some are convicted now and then.
func TestUnnoticed(t *testing.T) {
	gaps := map[string]gap{}
	for _, g := range unnoticed {
		gaps[g.name] = g
	}
	for _, d := range more() {
		if d.Law != "" {
			continue
		}
		g, known := gaps[d.Name]
		if !known || g.breaks == "" || g.want == "" {
			t.Errorf("%s: want a law, or what it breaks and what a law would have to do", d.Name)
		}
		delete(gaps, d.Name)
		if testing.Short() {
			continue // the long run judges it
		}
		t.Run(d.Name, func(t *testing.T) {
			for _, law := range drivertest.Laws() {
				var v drivertest.Verdict
				synctest.Test(t, func(*testing.T) { v = drivertest.Judge(law, d.Harness) })
				if v.Convicted() {
					t.Logf("%s is convicted now: if that is no chance, move it to the convicted ones:\n%s", d.Name, v)
				}
			}
		})
	}
	for name := range gaps {
		t.Errorf("%s: no such driver is without a law", name)
	}
}
