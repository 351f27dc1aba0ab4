/* The line over a quorum: a line on each node by ticket, and Maekawa's rule that a newer claim steps back.
 *
 * A claim's number is its ticket: 1 is the oldest. It joins on all nodes at once; requests arrive at any time, in order on
 * one node and in any order on different ones. A free node is the first comer's. One that joins behind a newer claim has
 * that one told (OLDER); unless it has its majority by then, it counts the node as lost and asks to step back (YIELD). The
 * node gives itself to the lowest ticket if an older one still waits, and answers GRANT if not. Who leaves hands over.
 *
 * No TTL helps anybody. Checked: no two claims have decided at once; and every run ends with every claim served, since an
 * end in which one waits is an invalid end state.
 *
 *   -DAPART     messages and answers of one node come on two connections, and overtake one another
 *   -DGIVEUP=c  claim c may leave without having been served
 *
 * Each of these must be violated:
 *   -DNOYIELD    nobody steps back: three claims with a node each wait for ever
 *   -DLATEYIELD  the node counts until the answer to YIELD
 *   -DAPART -DFORGETFUL  OLDER is dropped when the grant that it speaks of, or the answer to an earlier YIELD, is still
 *                under way: the claim then never steps back
 */

#ifndef CLAIMS
#define CLAIMS 2
#endif
#define N 3
#define QUORUM 2
#define AT(c, x) (((c) - 1) * N + (x))

mtype = { JOIN, YIELD, LEAVE, GRANT, WAITS, OLDER };

chan ask[CLAIMS * N] = [3] of { mtype };
chan answer[CLAIMS * N] = [3] of { mtype };
#ifdef APART
chan push[CLAIMS * N] = [3] of { mtype };
#else
#define push answer
#endif
bool gone[CLAIMS + 1];

byte deciders = 0;

/* The node to the lowest ticket that waits. */
inline settle() {
	i = 1;
	do
	:: i <= CLAIMS && !waits[i] -> i++
	:: i <= CLAIMS && waits[i] -> waits[i] = false; holder = i; if :: gone[i] :: else -> push[AT(i, x)]!GRANT fi; break
	:: i > CLAIMS -> holder = 0; break
	od;
	i = 0
}

inline serve(c) {
	atomic {
		ask[AT(c, x)]?m ->
		if
		:: m == JOIN && holder == 0 -> holder = c; if :: gone[c] :: else -> answer[AT(c, x)]!GRANT fi
		:: m == JOIN && holder != 0 ->
			i = 1;
			do :: i < c && !waits[i] -> i++ :: else -> break od;
			waits[c] = true;
			if :: i == c && c < holder -> if :: gone[holder] :: else -> push[AT(holder, x)]!OLDER fi :: else fi;
			i = 0
		:: m == YIELD ->
			i = 1;
			do :: i < c && !waits[i] -> i++ :: else -> break od;
			if
			:: holder == c && i < c -> waits[c] = true; settle(); if :: gone[c] :: else -> answer[AT(c, x)]!WAITS fi
			:: else -> i = 0; if :: gone[c] :: else -> answer[AT(c, x)]!GRANT fi
			fi
		:: m == LEAVE && holder == c -> settle()
		:: m == LEAVE && holder != c -> waits[c] = false
		fi;
		m = 0
	}
}

proctype Node(byte x) {
	byte holder, i;
	bool waits[CLAIMS + 1];
	mtype m;
end:	do
	:: serve(1)
	:: serve(2)
#if CLAIMS > 2
	:: serve(3)
#endif
#if CLAIMS > 3
	:: serve(4)
#endif
	od
}

/* From here the node does not count, whatever is under way. */
inline back(x) {
#ifndef LATEYIELD
	has[x] = false;
#endif
	older[x] = false; stepping[x] = true; ask[AT(c, x)]!YIELD
}

inline told(x) {
#ifndef NOYIELD
	if
	:: older[x] && has[x] && !stepping[x] -> back(x)
	:: else
	fi;
#endif
	if
	:: has[0] + has[1] + has[2] >= QUORUM -> goto decided
	:: else
	fi
}

inline take(x) {
	if
	:: m == GRANT -> has[x] = true; stepping[x] = false
	:: m == WAITS ->
#ifdef LATEYIELD
		has[x] = false;
#endif
		stepping[x] = false
	:: m == OLDER ->
#ifdef FORGETFUL
		older[x] = has[x] && !stepping[x]
#else
		older[x] = true
#endif
	fi;
	m = 0;
	told(x)
}

inline hear(x) {
	atomic { answer[AT(c, x)]?m -> take(x) }
}

#ifdef APART
inline listen(x) {
	atomic { push[AT(c, x)]?m -> take(x) }
}
#endif

proctype Claim(byte c) {
	bool has[N], older[N], stepping[N];
	byte i;
	mtype m;
	atomic { ask[AT(c, 0)]!JOIN; ask[AT(c, 1)]!JOIN; ask[AT(c, 2)]!JOIN }
	do
	:: hear(0) :: hear(1) :: hear(2)
#ifdef APART
	:: listen(0) :: listen(1) :: listen(2)
#endif
#ifdef GIVEUP
	:: c == GIVEUP -> goto leave
#endif
	od;
decided:
	atomic { deciders++; assert(deciders == 1) }
	deciders--;
leave:
	atomic {
		gone[c] = true;
		do
		:: i < N ->
			do :: answer[AT(c, i)]?_ :: empty(answer[AT(c, i)]) -> break od;
#ifdef APART
			do :: push[AT(c, i)]?_ :: empty(push[AT(c, i)]) -> break od;
#endif
			has[i] = false; older[i] = false; stepping[i] = false;
			ask[AT(c, i)]!LEAVE;
			i++
		:: else -> i = 0; break
		od
	}
}

init {
	byte i;
	atomic {
		do :: i < N -> run Node(i); i++ :: else -> i = 1; break od;
		do :: i <= CLAIMS -> run Claim(i); i++ :: else -> i = 0; break od
	}
}
