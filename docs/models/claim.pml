/* Claim, then write: why a token is stored at the resource before the first read.
 *
 * C holders increment one number under a lock that may be lost at any moment, so that all of them can be between any
 * two of their steps at once. Each takes the lock (tokens grow), reads, and writes what it read plus one. The resource
 * remembers the highest token it has seen, `high`, and compares in the same atomic step as it writes.
 *
 * When all are through:
 *   none lost      the number is the count of acknowledged writes
 *   last one wins  the holder of the highest token was acknowledged: the rule refuses nobody but the stale
 *
 * Run it (Debian: apt-get install spin gcc), here with claims:
 *
 *   spin -DCLAIM -a claim.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * and read "errors: 0". After a violation `spin -DVARIANT -t -p claim.pml` prints the interleaving (VARIANT as below).
 * Results with Spin 6.5.2, C = 3, exhaustive unless violated:
 *
 *   -DCLAIM              holds      4,137 states stored (C = 4: 190,641; C = 5: 11,780,192)
 *   (nothing)            violated   after 32 states: fenced writes alone lose an update
 *   -DNOFENCE            violated   after 32 states: so does no fence at all
 *   -DREADS              violated   after 32 states: so do reads that compare the token and do not store it
 *   -DCLAIM -DSTRICT     violated   after 18 states: with < for <= a holder is refused after its own claim
 */

#ifndef C
#define C 3
#endif

#ifdef STRICT
#define PASSES (t > high)
#else
#define PASSES (t >= high)
#endif

byte token = 0;     /* the last token the lock gave out */
byte high = 0;      /* the highest token the resource has seen */
byte number = 0;    /* what the resource holds */
byte acked = 0;     /* writes that were acknowledged */
byte through = 0;   /* holders that are done */
bool last = false;  /* the holder of token C was acknowledged */

proctype Holder() {
	byte t, seen;

	/* The lock. Earlier holders run on, for they may not know yet that they have lost it. */
	atomic { token++; t = token }

#ifdef CLAIM
	if
	:: atomic { PASSES -> high = t }
	:: atomic { !PASSES -> goto out }
	fi;
#endif

#ifdef READS
	if
	:: atomic { PASSES -> seen = number }
	:: atomic { !PASSES -> goto out }
	fi;
#else
	seen = number;
#endif

	atomic {
#ifdef NOFENCE
		number = seen + 1; acked++; last = last || t == C
#else
		if
		:: PASSES -> high = t; number = seen + 1; acked++; last = last || t == C
		:: else
		fi
#endif
	}

out:
	atomic {
		through++;
		if
		:: through == C -> assert(number == acked); assert(last)
		:: else
		fi
	}
}

init {
	byte i = 0;
	atomic {
		do
		:: i < C -> run Holder(); i++
		:: else -> break
		od
	}
}
