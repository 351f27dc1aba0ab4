// Package interlock takes distributed locks over the stores a team already runs.
package interlock
