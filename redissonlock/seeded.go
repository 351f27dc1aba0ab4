package redissonlock

import "strings"

// luaBug is a bug that can be seeded into a script, for the test that must find it.
type luaBug struct {
	on    bool
	swaps []string // text of the script, and what stands there instead; and so on
}

// seeded returns the script with the bugs that are on.
func seeded(script string, bugs []luaBug) string {
	for _, b := range bugs {
		for i := 0; b.on && i < len(b.swaps); i += 2 {
			if !strings.Contains(script, b.swaps[i]) {
				panic("redissonlock: a bug cannot be seeded: the script does not have " + b.swaps[i])
			}
			script = strings.Replace(script, b.swaps[i], b.swaps[i+1], 1)
		}
	}
	return script
}

var (
	takeBugs  []luaBug
	leaveBugs []luaBug
	holdBugs  []luaBug
)
