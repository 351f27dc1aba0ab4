package memcachedlock

// Faulty says what is wrong with a version of memcached.
var Faulty = faulty
