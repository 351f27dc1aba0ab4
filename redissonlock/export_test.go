package redissonlock

// Scripts returns the texts of the scripts that claims use, for tests that count calls.
func Scripts() []string {
	return []string{takeScript.Text, leaveScript.Text, holdScript.Text, markScript.Text, lookScript.Text}
}

// Sharded asks masters for messages of a shard, as New does.
var Sharded = sharded
