/* Tries on a free name, all at once, and one of them wins.
 *
 * Each of N nodes gives itself to whoever asks it first. A try looks at what the nodes that it lacks have told.
 *
 * Once it can have no majority with the answers that are still to come, it is to
 *
 *   leave  if another try has a majority of them, or one with an older ticket has any; or if it has no node itself
 *   stay   otherwise: it keeps its nodes, and asks again where somebody else was
 *
 * A try's number is its ticket, 1 the oldest. Requests and releases reach the nodes in any order, and what a node has told may be
 * long untrue when it is acted upon. To ask again where nothing has changed tells nothing new, so the model waits for the change;
 * the code asks after a moment, and leaves when nothing has come of that for long.
 *
 * Asserted: no two win, and when all have left one has won. An end in which one stays is an invalid end state.
 *
 * Each of these must be violated:
 *   -DALLLEAVE  whoever has no majority leaves
 *   -DALLSTAY   nobody leaves for an older one
 *   -DHASTY     one that has no node yet leaves, as soon as a majority has answered
 *   -DEAGER     one leaves for another before it is known that it has no majority
 *   -DMINORITY  one node is enough
 */

#ifndef TRIES
#define TRIES 3
#endif
#ifndef N
#define N 3
#endif
#ifdef MINORITY
#define QUORUM 1
#else
#define QUORUM (N / 2 + 1)
#endif

byte lock[N]; /* the try that has the node, or 0 */
byte won = 0, over = 0;

/* What a try knows: told is who was at the node, heard that the answer has come. */
#define HAS(x) (told[x] == id)
#define MINE(x) (heard[x] && HAS(x))
#define OLDER(x) (heard[x] && told[x] < id)
#define IS(x, y) (heard[y] && told[x] == told[y])
#if N == 3
#define HAVE (MINE(0) + MINE(1) + MINE(2))
#define MAJORITY(x) (heard[x] && !HAS(x) && IS(x, 0) + IS(x, 1) + IS(x, 2) >= QUORUM)
#define OTHERS (MAJORITY(0) || MAJORITY(1))
#define ANYOLDER (OLDER(0) || OLDER(1) || OLDER(2))
#else
#define HAVE (MINE(0) + MINE(1) + MINE(2) + MINE(3) + MINE(4))
#define MAJORITY(x) (heard[x] && !HAS(x) && IS(x, 0) + IS(x, 1) + IS(x, 2) + IS(x, 3) + IS(x, 4) >= QUORUM)
#define OTHERS (MAJORITY(0) || MAJORITY(1) || MAJORITY(2))
#define ANYOLDER (OLDER(0) || OLDER(1) || OLDER(2) || OLDER(3) || OLDER(4))
#endif

#if N == 3
#define HEARD (heard[0] + heard[1] + heard[2])
#else
#define HEARD (heard[0] + heard[1] + heard[2] + heard[3] + heard[4])
#endif
#ifdef EAGER
#define DECIDED (HAVE < QUORUM)
#else
#define DECIDED (HAVE + N - HEARD < QUORUM)
#endif
#ifdef HASTY
#define NONE (HAVE == 0)
#else
#define NONE (HEARD == N && HAVE == 0)
#endif

#ifdef ALLLEAVE
#define BEATEN (HEARD == N)
#else
#ifdef ALLSTAY
#define BEATEN (OTHERS)
#else
#define BEATEN (OTHERS || ANYOLDER)
#endif
#endif

inline ask(x) {
	atomic {
		told[x] == 0 || heard[x] && !HAS(x) && lock[x] != told[x] ->
		if
		:: lock[x] == 0 -> lock[x] = id
		:: else
		fi;
		told[x] = lock[x];
		heard[x] = 0
	}
}

inline hear(x) { atomic { told[x] != 0 && !heard[x] -> heard[x] = 1 } }

inline giveBack(x) {
	atomic {
		if
		:: HAS(x) -> lock[x] = 0
		:: else
		fi;
		told[x] = 0;
		heard[x] = 0
	}
}

proctype Try(byte id) {
	byte told[N];
	bool heard[N];
	do
	:: ask(0) :: ask(1) :: ask(2)
	:: hear(0) :: hear(1) :: hear(2)
#if N == 5
	:: ask(3) :: ask(4)
	:: hear(3) :: hear(4)
#endif
	:: atomic { HAVE >= QUORUM -> won++; assert(won == 1); goto end }
	:: atomic { DECIDED && (BEATEN || NONE) -> break }
	od;
	giveBack(0); giveBack(1); giveBack(2);
#if N == 5
	giveBack(3); giveBack(4);
#endif
end:
	atomic {
		over++;
		if
		:: over == TRIES -> assert(won == 1)
		:: else
		fi
	}
}

init {
	atomic {
		byte i = 1;
		do
		:: i <= TRIES -> run Try(i); i++
		:: else -> break
		od
	}
}
