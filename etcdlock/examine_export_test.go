package etcdlock

// Faulty says what is wrong with a version of etcd.
var Faulty = faulty
