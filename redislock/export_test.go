package redislock

// Own has a driver close its connection with itself, as one that was opened by URL.
func Own(d *Driver) { d.owned = true }
