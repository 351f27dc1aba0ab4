/* A claim that is held takes in nodes that come back, and so outlives a restart of all of them, one at a time.
 *
 * Each of N nodes has a lock. A claim asks nodes that vote until a majority has given itself to it, and then renews: in each renewal
 * every node is asked once, in any order; orders and answers are lost at will, and what is still under way when a renewal has
 * succeeded may be carried out later. LOSSES nodes lose their memory, each once. Such a node has no vote until no claim rests on a
 * vote that it gave before.
 *
 *   renew    the lock is the claim's: it stays, and the node counts for this renewal if it votes
 *   take in  the claim knows that it has not got the node, and the node is free: the lock is the claim's, whether it votes or not.
 *            It counts in a renewal that finds it voting, after one that began no earlier and has succeeded without it, while the
 *            time of the last one that succeeded runs. One that is found waiting for its vote has to begin again
 *   succeed  a majority counts
 *   fail     the next renewal begins
 *   past     the time of the last renewal that succeeded is over: so it is of locks which no later one has reached. Whoever holds is
 *            told, but may be late: what is under way may still renew it
 *
 * Asserted whenever a claim is held or renewed: nobody else is, and nobody else was since it was held first.
 *
 *   -DSTOPPED   the clock of the claim stands still, so it does not know that its time is over: then nobody else is held, at least
 *
 * Each of these must be violated:
 *   -DATONCE    a node counts for the renewal that takes it in
 *   -DUNPROVEN  it counts for the next one, although none has succeeded since: with FAILURES=1
 *   -DWAITING   it counts while it waits for its vote
 *   -DLATE      it counts when the time of the last renewal is over
 *   -DREMADE    a lock that is gone is made anew where the claim takes it to be there, and counts
 *   -DNODELAY   a node that has lost its memory votes at once
 *
 * Bounds: CLIENTS claims, of which the first RENEWERS renew, with success RENEWALS times at most and without FAILURES times; the others
 * hold and let go.
 */
#ifndef RENEWALS
#define RENEWALS 2
#endif
#ifndef FAILURES
#define FAILURES 0
#endif
#ifndef RENEWERS
#define RENEWERS 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#define N 3
#define QUORUM 2

/* What a claim knows of a node. */
#define LACKS  0
#define TAKEN  1 /* in, by a renewal that has not succeeded */
#define PROVEN 2 /* taken in, and one that began no earlier has succeeded */
#define COUNTS 3

byte lock[N];      /* the claim that has the node, or 0 */
bool mute[N];      /* no vote */
bool rely[N * CLIENTS]; /* by node and client: its claim may rest on a vote that the node has forgotten */
bool busy[CLIENTS];
byte holders, last; /* how many hold, and who was the last to get it */

#define RELY(x) rely[(x) * CLIENTS + c]
#define FREE(x) (lock[x] == 0)
#ifdef WAITING
#define VOTES(x) true
#else
#define VOTES(x) (!mute[x])
#endif
#if defined(LATE) || defined(STOPPED)
#define INTIME true
#else
#define INTIME (!past)
#endif

inline ask(x) {
	atomic {
		knows[x] != COUNTS && !mute[x] && (FREE(x) || lock[x] == id) ->
		lock[x] = id;
		if :: knows[x] = COUNTS :: true /* the answer is lost */ fi;
		if :: (knows[0] == COUNTS) + (knows[1] == COUNTS) + (knows[2] == COUNTS) >= QUORUM -> goto hold :: else fi
	}
}

/* The time of a vote that a node has forgotten is over before the claim has a majority. */
inline late(x) { atomic { RELY(x) -> RELY(x) = 0; knows[x] = LACKS } }

/* A renewal at one node. */
inline renew(x) {
	atomic {
		!asked[x] ->
		asked[x] = 1; owed[x] = 0;
		if
		:: true /* the order is lost */
		:: lock[x] == id ->
			reached[x] = 1;
			if
			:: true /* the answer is lost */
			:: knows[x] == LACKS -> knows[x] = TAKEN
			:: knows[x] != LACKS && !VOTES(x) -> knows[x] = TAKEN
			:: knows[x] == COUNTS && VOTES(x) -> ok[x] = 1
			:: knows[x] == PROVEN && VOTES(x) && INTIME -> knows[x] = COUNTS; ok[x] = 1
#ifdef UNPROVEN
			:: knows[x] == TAKEN && VOTES(x) -> knows[x] = COUNTS; ok[x] = 1
#endif
			fi
		:: FREE(x) && knows[x] == LACKS ->
			lock[x] = id; reached[x] = 1;
			if
			:: true
#ifdef ATONCE
			:: VOTES(x) -> knows[x] = COUNTS; ok[x] = 1
			:: !VOTES(x) -> knows[x] = TAKEN
#else
			:: knows[x] = TAKEN
#endif
			fi
#ifdef REMADE
		:: FREE(x) && knows[x] == COUNTS && VOTES(x) -> lock[x] = id; reached[x] = 1; if :: true :: ok[x] = 1 fi
#else
		:: lock[x] != id && knows[x] != LACKS -> knows[x] = LACKS
#endif
		fi
	}
}

/* An order of the last renewal is carried out when that has succeeded without it. */
inline straggle(x) {
	atomic {
		owed[x] ->
		owed[x] = 0;
		if
		:: lock[x] == id -> rests[x] = !past; if :: true :: knows[x] == LACKS || mute[x] -> knows[x] = PROVEN fi
		:: FREE(x) && knows[x] == LACKS -> lock[x] = id; rests[x] = !past; if :: true :: knows[x] = PROVEN fi
		:: lock[x] != id && knows[x] != LACKS -> knows[x] = LACKS
		:: else /* somebody else has it */
		fi
	}
}

/* A lock runs out that this renewal has not reached, nor the last one if its time is over. */
inline fade(x) { atomic { lock[x] == id && !rests[x] && !reached[x] -> lock[x] = 0 } }

/* What a renewal that has succeeded leaves of a node for the next one. */
inline next(x) {
	if :: !ok[x] -> RELY(x) = 0 :: else fi;
	if :: knows[x] == TAKEN -> knows[x] = PROVEN :: else fi;
	rests[x] = reached[x]; owed[x] = !asked[x];
	reached[x] = 0; asked[x] = 0; ok[x] = 0
}

/* A renewal ends without success, and the next one begins. */
inline again(x) {
	rests[x] = !past && (rests[x] || reached[x]);
	reached[x] = 0; asked[x] = 0; ok[x] = 0; owed[x] = 0
}

/* The time of the last renewal is over. The one that is under way may rest on a node that has forgotten it since. */
inline over(x) {
	if :: lock[x] == id || !reached[x] -> RELY(x) = 0 :: else fi;
	rests[x] = 0
}

inline let(x) {
	if :: lock[x] == id -> lock[x] = 0 :: else fi;
	knows[x] = LACKS; rests[x] = 0; reached[x] = 0; asked[x] = 0; ok[x] = 0; owed[x] = 0; RELY(x) = 0
}

proctype Client(byte c) {
	byte id, done, failed;
	byte knows[N];
	bool asked[N], ok[N];
	bool reached[N]; /* by an order of this renewal */
	bool rests[N];   /* reached by the last one, so it stays as long as that */
	bool owed[N];    /* an order of the last one may still be under way */
	bool past;

	atomic { id = c + 1; busy[c] = 1 }
	do
	:: ask(0) :: ask(1) :: ask(2)
	:: late(0) :: late(1) :: late(2)
	:: goto leave
	od;
hold:
	atomic {
		holders++; last = id;
		assert(holders == 1);
		rests[0] = knows[0] == COUNTS; rests[1] = knows[1] == COUNTS; rests[2] = knows[2] == COUNTS;
		if :: c >= RENEWERS -> goto sit :: else fi
	}
	do
	:: renew(0) :: renew(1) :: renew(2)
	:: straggle(0) :: straggle(1) :: straggle(2)
	:: fade(0) :: fade(1) :: fade(2)
	:: atomic {
		done < RENEWALS && ok[0] + ok[1] + ok[2] >= QUORUM ->
		done++;
#ifndef STOPPED
		assert(last == id);
#endif
		if :: past -> past = 0; holders++; assert(holders == 1) :: else fi;
		next(0); next(1); next(2)
	}
	:: atomic { failed < FAILURES -> failed++; again(0); again(1); again(2) }
	:: atomic { !past -> past = 1; holders--; over(0); over(1); over(2) }
	:: break
	od;
	if :: past -> goto leave :: else fi;
sit:
	atomic { holders--; past = 0 };
leave:
	atomic { let(0); let(1); let(2); busy[c] = 0; past = 0; done = 0; failed = 0 }
}

proctype Crash(byte x) {
	byte c;
	atomic {
		lock[x] = 0; mute[x] = 1;
		do :: c < CLIENTS -> RELY(x) = busy[c]; c++ :: else -> c = 0; break od
	}
#ifndef NODELAY
	do :: c < CLIENTS -> !RELY(x); c++ :: else -> c = 0; break od;
#endif
	mute[x] = 0
}

init {
	byte c;
	atomic {
		do :: c < CLIENTS -> run Client(c); c++ :: else -> break od;
		c = 0;
		do :: c < LOSSES -> run Crash(c); c++ :: else -> break od
	}
}
