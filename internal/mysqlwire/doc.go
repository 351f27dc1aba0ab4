// Package mysqlwire lets whoever has asked a MariaDB or MySQL go before the answer, and the connection stay: see connlock.Pipe.
//
// The client, github.com/go-sql-driver/mysql, sends a query and reads its answer in one call, which nobody can leave without closing the
// connection. So where the stream below is ours and in the clear, a query is sent here, and what may take long is to wait for the first byte of
// its answer; then the client is called, finds its query sent, and reads. Elsewhere, as by TLS, one goroutine makes the calls.
package mysqlwire
