package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Account is an expression: the name by which a MariaDB or MySQL knows the user who asks, as statements have it.
const Account = "concat(quote(left(current_user(), char_length(current_user()) - char_length(substring_index(current_user(), '@', -1)) - 1)), '@', quote(substring_index(current_user(), '@', -1)))"

// What is asked of a MariaDB or MySQL, which do not have all of it. A setting of the session is before the server's own.
const (
	mariaSettings = "show session variables where variable_name in ('read_only', 'innodb_read_only', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', " +
		"'innodb_doublewrite', 'log_bin', 'sync_binlog', 'binlog_format', 'tx_isolation', 'transaction_isolation', 'tx_read_only', 'transaction_read_only', 'wait_timeout', 'max_statement_time', 'max_connections', " +
		"'max_user_connections', 'max_allowed_packet', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')"
	mariaStatus = "show global status where variable_name in ('Threads_connected', 'Slaves_connected', 'Slave_running', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status')"

	// A user without PROCESS sees his own alone, so a MySQL, which does not count its replicas, tells of none.
	mariaThreads = "select 'own', count(*) from information_schema.processlist where user = substring_index(user(), '@', 1) " +
		"union all select 'dumps', count(*) from information_schema.processlist where command like 'Binlog Dump%' " +
		"union all select 'process', count(*) from information_schema.user_privileges where privilege_type = 'PROCESS' " +
		"and grantee = " + Account + " union all select 'account', " + Account + " union all select 'common max', @@global.max_user_connections"
)

// ReadOnly is the finding about a MariaDB or MySQL that takes no writes.
func ReadOnly() driver.Finding {
	return driver.Finding{
		Code: "S18", Title: "role", Level: driver.LevelBad, Seen: "read_only or innodb_read_only is on",
		Why:  "the server takes no writes: no lock can be had, renewed or given back",
		Mend: "name the primary; SET GLOBAL read_only = 0 where this is to be it",
	}
}

// MariaDB makes the checks of a MariaDB or MySQL. Of one that takes no writes it says only that.
func MariaDB(ctx context.Context, s Store) ([]driver.Finding, error) {
	x := &examination{Store: s, facts: map[string]string{}}
	for _, query := range []string{mariaSettings, mariaStatus, mariaThreads} {
		if err := x.gather(ctx, query); err != nil {
			return nil, err
		}
	}
	role := driver.Finding{Code: "S18", Title: "role", Seen: "it takes writes, and follows nobody"}
	switch {
	case !x.is("read_only", "OFF") || x.is("innodb_read_only", "ON"):
		return []driver.Finding{ReadOnly()}, nil
	case x.is("tx_read_only", "ON") || x.is("transaction_read_only", "ON"):
		role.Level, role.Seen = driver.LevelBad, "tx_read_only is on"
		role.Why = "transactions write nothing: no lock can be had, renewed or given back"
		role.Mend = "SET GLOBAL tx_read_only = 0, and the same in the server's file (MySQL: transaction_read_only); connections that are there keep what they have"
		return []driver.Finding{role}, nil
	case x.is("Slave_running", "ON"):
		role.Level, role.Seen = driver.LevelWarn, "it takes writes, and is a replica (Slave_running)"
		role.Why = "who locks on the server that it follows is not excluded here, and what both write is in conflict"
		role.Mend = "name the primary; SET GLOBAL read_only = 1 here, or STOP SLAVE where this is to be it"
	}
	x.add(role)
	x.myFlushing()
	x.myFailover()
	x.isolation(x.facts["tx_isolation"] + x.facts["transaction_isolation"]) // one of the two is there, as a rule
	x.myLog()
	x.answers("max_statement_time", x.seconds("max_statement_time"), "SET GLOBAL max_statement_time = 0, and the same in the server's file; ALTER USER "+x.facts["account"]+" WITH MAX_STATEMENT_TIME 0, where the limit is this user's")
	x.idle("wait_timeout", x.seconds("wait_timeout"), "SET GLOBAL wait_timeout = 28800, and the same in the server's file")
	most, own := x.number("max_connections"), x.number("max_user_connections")
	user := fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", x.facts["account"], more(own))
	if own == x.number("common max") {
		user = fmt.Sprintf("SET GLOBAL max_user_connections = %d, and the same in the server's file", more(own))
	}
	x.connections("smaller pools", limit{"max_connections", most, x.number("Threads_connected"), fmt.Sprintf("SET GLOBAL max_connections = %d, and the same in the server's file", more(most))},
		limit{"the user's limit (max_user_connections)", own, x.number("own"), user})
	x.myPacket()
	return x.found, x.clock(ctx, "select timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))")
}

// seconds is a fact in seconds, and perhaps a fraction.
func (x *examination) seconds(name string) time.Duration {
	d, _ := time.ParseDuration(x.facts[name] + "s")
	return d
}

// myFlushing looks at what a crash loses.
func (x *examination) myFlushing() {
	f := driver.Finding{Code: "S17", Title: "flushing", Level: driver.LevelWarn}
	switch {
	case x.is("innodb_flush_log_at_trx_commit", "0"):
		f.Seen, f.Mend = "innodb_flush_log_at_trx_commit is 0", "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in the server's file"
		f.Why = "a server that crashes forgets the locks of its last second, and lets others in"
	case !x.is("innodb_flush_log_at_trx_commit", "1"):
		f.Seen = "innodb_flush_log_at_trx_commit is " + x.facts["innodb_flush_log_at_trx_commit"]
		f.Mend = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in the server's file"
		f.Why = "a machine that crashes forgets the locks of its last second, and lets others in"
	case strings.Contains(x.facts["innodb_flush_method"], "nosync"):
		f.Seen, f.Mend = "innodb_flush_method is "+x.facts["innodb_flush_method"], "innodb_flush_method = O_DIRECT in the server's file, and a restart"
		f.Why = "nothing is flushed: a machine that crashes can lose locks, tokens, or the database"
	case x.is("log_bin", "ON") && !x.is("sync_binlog", "1"):
		f.Seen, f.Mend = "log_bin is on, and sync_binlog is "+x.facts["sync_binlog"], "SET GLOBAL sync_binlog = 1, and the same in the server's file"
		f.Why = "a commit that is not in the binary log after a crash of the machine is rolled back: the last locks are forgotten, and others get in"
	case x.is("innodb_doublewrite", "OFF"):
		f.Seen, f.Mend = "innodb_doublewrite is off", "innodb_doublewrite = ON in the server's file, and a restart, unless the disk writes whole pages"
		f.Why = "a machine that crashes can leave a torn page, and lose locks, tokens, or the database"
	default:
		f.Level, f.Seen = driver.LevelOK, "what is committed is on the disk"
	}
	x.add(f)
}

// myFailover looks at who would take the server's place, and whether commits wait for him.
func (x *examination) myFailover() {
	f := driver.Finding{Code: "S18", Title: "failover", Seen: "no replica is seen; what a service does below the server is not"}
	_, counts := x.facts["Slaves_connected"]
	replicas := max(x.number("Slaves_connected"), x.number("dumps"))
	semi := x.is("rpl_semi_sync_master_enabled", "ON") || x.is("rpl_semi_sync_source_enabled", "ON")
	waits := x.is("Rpl_semi_sync_master_status", "ON") || x.is("Rpl_semi_sync_source_status", "ON")
	switch {
	case replicas == 0 && !counts && x.is("process", "0"):
		f.Level, f.Seen = driver.LevelSkip, "this user may not see whether there are replicas: GRANT PROCESS ON *.* TO "+x.facts["account"]
	case replicas == 0:
	case semi && waits:
		f.Seen = fmt.Sprintf("%d replicas, and commits wait for one until a timeout (semi-synchronous)", replicas)
	case !x.Leads:
		f.Seen = fmt.Sprintf("%d replicas, none of which commits wait for; a failover ends all locks, and that is told", replicas)
	default:
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("%d replicas, none of which commits wait for", replicas)
		f.Why = "a failover can lose locks that were just taken, and let others in"
		f.Mend = "semi-synchronous replication: SET GLOBAL rpl_semi_sync_master_enabled = 1 here, rpl_semi_sync_slave_enabled = 1 on the replicas"
	}
	x.add(f)
}

// myLog looks whether the binary log takes what is written at READ COMMITTED.
func (x *examination) myLog() {
	f := driver.Finding{Title: "binary log", Seen: "it is off"}
	if x.is("log_bin", "ON") {
		f.Seen = "binlog_format is " + x.facts["binlog_format"]
		if x.is("binlog_format", "STATEMENT") {
			f.Level, f.Mend = driver.LevelBad, "SET GLOBAL binlog_format = ROW, and the same in the server's file; connections that are there keep what they have"
			f.Why = "a server that logs statements refuses what is written at READ COMMITTED: no lock can be had, renewed or given back"
		}
	}
	x.add(f)
}

// smallPacket is what a line of many claims needs, or the renewal of many.
const smallPacket = 1 << 20

// myPacket looks at how long a statement may be.
func (x *examination) myPacket() {
	size := x.number("max_allowed_packet")
	f := driver.Finding{Title: "packet", Seen: fmt.Sprintf("max_allowed_packet is %d bytes", size)}
	if size < smallPacket {
		f.Level, f.Mend = driver.LevelWarn, "SET GLOBAL max_allowed_packet = 16777216, and the same in the server's file"
		f.Why = "who holds many locks renews them by one statement, and a long line is one row: when it is too large it is refused, and the locks are lost"
	}
	x.add(f)
}
