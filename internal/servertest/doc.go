// Package servertest starts the servers that tests, torture and benchmarks lock on: a Redis, a
// master with its replica and three Sentinels, a Cluster, a PostgreSQL, a MariaDB, a memcached, an
// etcd of one member or several, a ZooKeeper alone or as an ensemble. They listen on free ports of
// the loopback interface, keep their files in a temporary folder, and on Linux die with the process
// that started them, however that ends.
//
// A server can be stopped, killed, paused and started again with its data, and its wall clock can
// be stepped. Do looks at a Redis behind the back of the code under test. A database is paused by
// its connections: see package wire.
package servertest
