package etcdlock

// Faulty says what is wrong with a version of etcd.
var Faulty = faulty

// Alarms are what a member says is wrong, in one order.
var Alarms = alarms
