package shedlock

// Words of the SQL that both databases are sent, with what each of them is sent for it: the clock
// in UTC; the table, for an UPDATE that goes by its key; a text of bytes; the row of a name, and
// not of another one that the table takes for the same; what is read of a row, times in µs since
// 1970; where the table's columns are found, whether one has characters of ASCII alone, whether a
// commit outlives the server's crash and its machine's when it is answered, and what is wrong with
// a column or the connection, else ”; and how the table is made. Besides there is :table.
var (
	postgres = []string{
		":now", "timezone('utc', clock_timestamp())",
		":keyed", ":table",
		":text", "convert_from(decode('%x', 'hex'), 'UTF8')",
		":row", "name = %s",
		":read", "(extract(epoch from :now) * 1000000)::bigint, name, locked_by, " +
			"coalesce((extract(epoch from locked_at) * 1000000)::bigint, 0), coalesce((extract(epoch from lock_until) * 1000000)::bigint, 0)",
		":columns", "(table_schema, table_name) = (select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(':table'))",
		":ascii", "0", // the server says what it cannot keep
		":kept", "case when current_setting('synchronous_commit') = 'off' then 0 when current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on' then 2 else 1 end",
		":problem", "case when pg_is_in_recovery() then 'the server is a standby: want its primary' " +
			"when data_type = 'timestamp with time zone' then 'its times have a time zone, so that each client reads others: want the type timestamp' " +
			"when data_type <> 'timestamp without time zone' and column_name in ('lock_until', 'locked_at') then 'its times are of the type ' || data_type || ': want timestamp' " +
			"when column_name = 'name' and not exists (select from pg_index i where i.indrelid = to_regclass(':table') and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = ordinal_position " +
			"and i.indpred is null) then 'its column name is not the primary key, so that a name could have two rows' " +
			"when (select relpersistence from pg_class where oid = to_regclass(':table')) <> 'p' then 'it is UNLOGGED or TEMPORARY, so that a crash empties it: want neither' " +
			"when column_name = 'name' and data_type not in ('character varying', 'text') then 'its column name is of the type ' || data_type || ': want varchar(64)' " +
			"when column_name = 'locked_by' and character_maximum_length < 255 then 'its column locked_by is too short: want varchar(255)' else '' end",
		":create", "CREATE TABLE :table (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))",
	}

	// The clock of MySQL and MariaDB stands still for the length of a statement. One that waits for a
	// row goes by the time at which it began, so it leaves locks alone that have ended meanwhile, and
	// sets times that are good from its beginning on, which is what its caller counts from.
	mariadb = []string{
		":now", "utc_timestamp(3)",
		":keyed", ":table force index (primary)", // a small table would be read, and locked, as a whole
		":text", "_utf8mb4 x'%x'",
		":row", "name = %[1]s and cast(convert(name using utf8mb4) as binary) = cast(%[1]s as binary)",
		":read", "timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', :now), cast(convert(name using utf8mb4) as binary), cast(convert(locked_by using utf8mb4) as binary), " +
			"coalesce(timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', locked_at), 0), coalesce(timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', lock_until), 0)",
		":columns", "table_name = substring_index(':table', '.', -1) and table_schema = if(locate('.', ':table') > 0, substring_index(':table', '.', 1), database())",
		":ascii", "character_set_name <> 'utf8mb4'",
		":kept", "case @@innodb_flush_log_at_trx_commit when 0 then 0 when 1 then 2 else 1 end",
		":problem", "case when @@autocommit = 0 then 'autocommit is off, so that nothing would be committed: want autocommit=1 in the data source name' " +
			"when data_type = 'timestamp' and @@session.time_zone <> @@global.time_zone then 'the connection has a time zone of its own, and by the type timestamp " +
			"each client reads others: want no time_zone in the data source name, or columns of type datetime(3)' " +
			"when (lower(column_name) = 'name') <> (column_key = 'PRI') then 'its column name is not the primary key, so that a name could have two rows' " +
			"when data_type not in ('timestamp', 'datetime') and lower(column_name) in ('lock_until', 'locked_at') then concat('its times are of the type ', data_type, ': want timestamp(3) or datetime(3)') " +
			"when (select t.engine from information_schema.tables t where t.table_schema = columns.table_schema and t.table_name = columns.table_name) <> 'InnoDB' " +
			"then 'its engine has no transactions, and can lose or empty it in a crash: want InnoDB' " +
			"when lower(column_name) = 'name' and data_type <> 'varchar' then concat('its column name is of the type ', data_type, ': want varchar(64)') " +
			"when lower(column_name) = 'locked_by' and character_maximum_length < 255 then 'its column locked_by is too short: want varchar(255)' " +
			"when abs(timestampdiff(second, now(), sysdate())) > 60 then 'time stands still for the connection, which has a timestamp of its own: want none in the data source name' else '' end",
		":create", "CREATE TABLE :table (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))",
	}
)

// What is said in these words. A take and an insert are void after a time by the database's clock,
// so that nothing is taken late for nobody.
const (
	take    = "update :keyed set locked_at = :now, lock_until = :now + interval '%[1]f' second, locked_by = %[2]s where %[5]s and (lock_until <= :now or %[6]s) and :now <= %[3]s"
	insert  = "insert into :table (name, lock_until, locked_at, locked_by) select %[4]s, :now + interval '%[1]f' second, :now, %[2]s from (select 1 as one) one where :now <= %[3]s"
	renew   = "update :keyed set lock_until = :now + interval '%f' second where lock_until > :now and %s"
	release = "update :keyed set lock_until = :now where lock_until > :now and %s"
	look    = "select :read from (select 1 as one) one left join :table on %s" // what the time is, whatever is there
	inspect = "select count(*), coalesce(max(case when lower(column_name) = 'name' then coalesce(character_maximum_length, 255) end), 0), coalesce(max(:ascii), 0), coalesce(min(datetime_precision), 0), " +
		"coalesce(max(:kept), 0), max(:problem) from information_schema.columns where :columns and lower(column_name) in ('name', 'lock_until', 'locked_at', 'locked_by')"
	missing = "there is no table :table: make it as ShedLock says, :create"
)
