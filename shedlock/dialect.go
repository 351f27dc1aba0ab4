package shedlock

// dialect is what differs between the databases. What has verbs is a format.
type dialect struct {
	now    string // the database's clock, in UTC
	micros string // a time in µs since 1970
	later  string // a time, and so many µs
	text   string // bytes
	name   string // the row of a name, and not of another one that the table takes for the same
	update string // of a table, by its key
	insert string // of a row where there is none, if a condition is met

	schema  string // where the table is found
	ascii   string // whether a column has characters of ASCII alone
	safe    string // whether a commit is on the disk when it is answered
	problem string // what is wrong with a column or the connection; else ''
	create  string // ShedLock's table
}

var postgres = dialect{
	now:    "timezone('utc', clock_timestamp())",
	micros: "(extract(epoch from %s) * 1000000)::bigint",
	later:  "(%s + %d * interval '1 microsecond')",
	text:   "convert_from(decode('%x', 'hex'), 'UTF8')",
	name:   "name = %s",
	update: "update %s",
	insert: "insert into %s (name, lock_until, locked_at, locked_by) select %s where %s on conflict (name) do nothing",

	schema: "(select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass('%s'))",
	ascii:  "0", // the server says what it cannot keep
	safe:   "case when current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' and current_setting('synchronous_commit') <> 'off' then 1 else 0 end",
	problem: "case when pg_is_in_recovery() then 'the server is a standby: want its primary' " +
		"when data_type = 'timestamp with time zone' then 'its times have a time zone, so that each client reads others: want the type timestamp' else '' end",
	create: "CREATE TABLE %s (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))",
}

// The clock of MySQL and MariaDB stands still for the length of a statement. One that waits for a row goes by the time at which it began, so
// it leaves locks alone that have ended meanwhile, and sets times that are good from its beginning on, which is what its caller counts from.
var mariadb = dialect{
	now:    "utc_timestamp(3)",
	micros: "timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', %s)",
	later:  "timestampadd(microsecond, %[2]d, %[1]s)",
	text:   "_utf8mb4 x'%x'",
	name:   "name = %[1]s and cast(name as binary) = cast(%[1]s as binary)",
	update: "update %s force index (primary)", // a small table would be read, and locked, as a whole
	insert: "insert ignore into %s (name, lock_until, locked_at, locked_by) select %s from dual where %s",

	schema: "database()",
	ascii:  "character_set_name <> 'utf8mb4'",
	safe:   "@@innodb_flush_log_at_trx_commit = 1",
	problem: "case when @@autocommit = 0 then 'autocommit is off, so that nothing would be committed: want autocommit=1 in the data source name' " +
		"when data_type = 'timestamp' and @@session.time_zone <> @@global.time_zone then 'the connection has a time zone of its own, and by the type timestamp " +
		"each client reads others: want no time_zone in the data source name, or columns of type datetime(3)' " +
		"when column_name = 'name' and column_key <> 'PRI' then 'its column name is not the primary key, so that a name could have two rows' else '' end",
	create: "CREATE TABLE %s (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))",
}
