/* A quorum of nodes that forget who holds a lock at any moment, and still never let a token go back.
 *
 * Each of N nodes has a lock and a counter. A claim asks the nodes in any order; answers are lost at will. What removes a
 * lock from a node (release, early, late or of another's lock; expiry by a wrong clock; an operator's break; a process that
 * gave up or died) is one and the same: whoever asks next may find the node free. So no clock is trusted at all.
 *
 *   grant   lock free: it is the claim's, counter := max(counter + STRIDE, what the client proposes); answer: the counter
 *   decide  with a majority: the token is the largest counter of all its nodes, again with each answer
 *   raise   on those of its nodes that have less: counter := max(counter, token), if the lock is still the claim's
 *   report  when a majority holds the token under the claim's name. It then owns the leases token-STRIDE+1 to token, and
 *           passes them on in its process
 *
 * Asserted at each report, against each claim reported before: they share a node; and on every node on which both were
 * confirmed, all tokens of the claim that the node served later are larger. So tokens are unique and ordered.
 *
 *   -DCLOCKS   locks stay until their claim has ended: then no two claims are held at once, either
 *   -DREJOIN   LOSSES nodes lose their memory, each once, node LOST first. Such a node has no vote until no claim counts on a
 *              vote that it gave before; a claim stops counting on that when its time is over. Then it is ready. It votes again,
 *              above the largest counter of the others, when a majority of the others votes, or when every node votes or is ready.
 *              Every wait must end. While two nodes have no vote at once the order of tokens is not asserted: it rests on the
 *              time that proposals are made of, which is not here
 *   -DDEAD     beside these the last node goes away for good, and an operator says so: it counts as one that is ready
 *
 * Each of these must be violated:
 *   -DNOWRITEBACK  the token is the largest counter, and is not raised
 *   -DNOCONDITION  raise does not look at who has the lock
 *   -DFIXED        the token stays as first chosen, though a node that is granted later answers more
 *   -DNARROW       grants are one apart, and two leases use what one has reserved
 *   -DMINORITY     one node is enough
 *   -DCLOCKS -DEARLY  locks go before their claim has ended: two claims are held at once, though their tokens are in order
 *   -DREJOIN -DNODELAY, -DREJOIN -DNOCOPY
 *   -DREJOIN -DCLOCKS -DLOSSES=2 -DUNORDERED -DNODELAY  two are held at once; -DUNORDERED asserts no order of tokens
 *   -DREJOIN -DLOSSES=2 -DSOURCESONLY  a vote comes back only if a majority of the others votes: the waits do not end
 *   -DREJOIN -DDEAD -DSILENT           nobody says that a node is gone for good: the waits do not end
 *
 * Bounds: CLIENTS, claims of each one after the other (ROUNDS), grants of each node (GRANTS), proposals {0, HIGH}.
 */

#ifndef HIGH
#define HIGH 9 /* a proposal above every counter */
#endif
#ifndef GRANTS
#define GRANTS 2 /* a node grants this often at most: the bound of the state space */
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define N 3
#ifdef MINORITY
#define QUORUM 1
#else
#define QUORUM 2
#endif
#define STRIDE 2
#ifdef NARROW
#define STEP 1
#else
#define STEP STRIDE
#endif
#define CLAIMS (CLIENTS * ROUNDS)

byte lock[N];  /* the claim that has the node, or 0 */
byte count[N];
byte turn[N];  /* grants so far: only the assertion looks at it */
bool mute[N];  /* no vote */

typedef Lease { byte high; byte turn[N] }
Lease said[CLAIMS + 1];

#ifdef CLOCKS
bool over[CLAIMS + 1];
byte holders = 0;
#endif
#if defined(CLOCKS) && !defined(EARLY)
#define MAYGO(x) (over[lock[x]])
#define EXPIRES false
#else
#define MAYGO(x) (true)
#define EXPIRES true
#endif

#ifdef REJOIN
bool counts[N * CLIENTS]; /* by node, of a client's claim: on a vote that was forgotten */
bool busy[CLIENTS];
bool ready[N];  /* its wait is over, and it has no vote */
bool unsure;    /* two nodes had no vote at once */
#define COUNTS(x) counts[(x) * CLIENTS + c]
#define VOTERS(x) ((x != 0 && !mute[0]) + (x != 1 && !mute[1]) + (x != 2 && !mute[2]))
#define OVER(x) (!mute[x] || ready[x])
#ifdef SOURCESONLY
#define MAYVOTE(x) (VOTERS(x) >= QUORUM)
#else
#define MAYVOTE(x) (VOTERS(x) >= QUORUM || OVER(0) && OVER(1) && OVER(2))
#endif
#ifdef UNORDERED
#define ORDERED (false)
#else
#define ORDERED (!unsure)
#endif
#else
#define ORDERED (true)
#endif

#ifdef NOCONDITION
#define STILLMINE(x) (true)
#else
#define STILLMINE(x) (lock[x] == id)
#endif

#ifdef NOWRITEBACK
#define GOOD(x) (has[x])
#else
#define GOOD(x) (has[x] && known[x] >= token)
#endif
#ifdef FIXED
#define CHOOSES (token == 0)
#else
#define CHOOSES (true)
#endif
#define HAVE (has[0] + has[1] + has[2])
#define SURE (GOOD(0) + GOOD(1) + GOOD(2))

/* A node that has another's lock may be found free at any moment. */
inline ask(x) {
	atomic {
		!mute[x] && !has[x] && (lock[x] == id || turn[x] < GRANTS && (lock[x] == 0 || MAYGO(x))) ->
		if
		:: lock[x] == id
		:: turn[x] < GRANTS && (lock[x] != id || EXPIRES) ->
			lock[x] = id;
			turn[x]++;
			rank[x] = turn[x];
			count[x] = (proposal > count[x] + STEP -> proposal : count[x] + STEP)
		fi;
		if
		:: has[x] = 1; known[x] = count[x]; step(); if :: sure -> goto report :: else fi
		:: true /* the answer is lost */
		fi
	}
}

inline raise(x) {
	atomic {
		token != 0 && has[x] && known[x] < token ->
		if
		:: STILLMINE(x) ->
			count[x] = (token > count[x] -> token : count[x]);
			if
			:: known[x] = count[x]; step(); if :: sure -> goto report :: else fi
			:: true /* the answer is lost */
			:: EXPIRES -> lock[x] = 0; has[x] = 0; known[x] = 0; step()
			fi
		:: else -> has[x] = 0; known[x] = 0; step()
		fi
	}
}

/* The time of a vote that a node has forgotten is over: it counts no more. */
inline late(x) {
	atomic { COUNTS(x) -> COUNTS(x) = 0; has[x] = 0; known[x] = 0; if :: HAVE < QUORUM -> token = 0 :: else fi }
}

/* What a client decides when an answer has come. */
inline step() {
	d_step {
	if
	:: HAVE < QUORUM -> token = 0
	:: else ->
		if
		:: CHOOSES ->
			token = 0; i = 0;
			do
			:: i < N -> if :: has[i] && known[i] > token -> token = known[i] :: else fi; i++
			:: else -> i = 0; break
			od
		:: else
		fi;
		sure = SURE >= QUORUM
	fi
	}
}

proctype Client(byte c) {
	byte id, round, proposal, token, i, j;
	bool sure, met;
	bool has[N]; byte known[N]; byte rank[N];
again:
	atomic {
		if :: round == ROUNDS -> goto end :: else fi;
		id = c * ROUNDS + round + 1; round++;
		if :: proposal = 0 :: proposal = HIGH fi;
#ifdef REJOIN
		busy[c] = 1
#endif
	}
	do
	:: ask(0) :: ask(1) :: ask(2)
	:: raise(0) :: raise(1) :: raise(2)
#ifdef REJOIN
	:: late(0) :: late(1) :: late(2)
#endif
	:: goto leave
	od;
report:
	atomic {
		sure = 0;
		said[id].high = token;
		i = 0;
		do :: i < N -> said[id].turn[i] = (GOOD(i) -> rank[i] : 0); i++ :: else -> break od;
		j = 1;
		do
		:: j <= CLAIMS ->
			if
			:: j != id && said[j].high != 0 ->
				met = 0; i = 0;
				do
				:: i < N ->
					if
					:: said[id].turn[i] != 0 && said[j].turn[i] != 0 ->
						met = 1;
						if
						:: said[j].turn[i] < said[id].turn[i] -> assert(said[j].high < token - (STRIDE - 1) || !ORDERED)
						:: else -> assert(token < said[j].high - (STRIDE - 1) || !ORDERED)
						fi
					:: else
					fi;
					i++
				:: else -> break
				od;
				assert(met || !ORDERED)
			:: else
			fi;
			j++
		:: else -> break
		od;
		met = 0
#ifdef CLOCKS
		; holders++; assert(holders == 1)
#endif
	}
#ifdef CLOCKS
	holders--;
#endif
leave:
	atomic {
#ifdef CLOCKS
		over[id] = 1;
#endif
#ifdef REJOIN
		busy[c] = 0; COUNTS(0) = 0; COUNTS(1) = 0; COUNTS(2) = 0;
#endif
		i = 0;
		do :: i < N -> has[i] = 0; known[i] = 0; rank[i] = 0; i++ :: else -> break od;
		i = 0; j = 0; token = 0; proposal = 0; sure = 0; id = 0
	}
	goto again;
end:
	skip
}

#ifdef REJOIN
proctype Crash(byte x) {
	byte c, most;
	atomic {
		unsure = unsure || mute[0] || mute[1] || mute[2];
		lock[x] = 0; count[x] = 0; mute[x] = 1;
		do :: c < CLIENTS -> COUNTS(x) = busy[c]; c++ :: else -> c = 0; break od
	}
#ifndef NODELAY
	do :: c < CLIENTS -> !COUNTS(x); c++ :: else -> c = 0; break od;
#endif
	ready[x] = 1;
	atomic {
		MAYVOTE(x) ->
#ifndef NOCOPY
		do :: c < N -> if :: c != x && count[c] > most -> most = count[c] :: else fi; c++ :: else -> c = 0; break od;
#endif
		count[x] = most; mute[x] = 0; ready[x] = 0; most = 0
	}
}

#ifdef DEAD
/* Nobody knows what it knew. Who counts on it counts on: nobody else is given it. */
proctype Death() {
	atomic { unsure = unsure || mute[0] || mute[1]; mute[2] = 1 };
#ifndef SILENT
	ready[2] = 1
#endif
}
#endif
#endif

init {
	byte c;
	atomic {
		count[0] = 3;
		do :: c < CLIENTS -> run Client(c); c++ :: else -> c = 0; break od;
#ifdef REJOIN
		run Crash(LOST); /* node 0 is the one whose counter is ahead */
#if LOSSES > 1
		run Crash((LOST + 1) % N);
#endif
#if LOSSES > 2
		run Crash((LOST + 2) % N);
#endif
#ifdef DEAD
		run Death()
#endif
#endif
	}
}
