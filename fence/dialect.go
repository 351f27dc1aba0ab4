package fence

import "fmt"

// A Dialect says how a database spells what [Table] asks of it.
type Dialect int

// The dialects. Each needs a version of the last ten years: SQLite 3.24, PostgreSQL 9.5, MySQL 5.7 or MariaDB 10.2.
// SQLite and MySQL mark parameters by ?, PostgreSQL by $1.
const (
	SQLite Dialect = iota + 1
	PostgreSQL
	MySQL // and MariaDB
)

func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// statements are the three statements of a table of fences.
//
//	create   the table, if there is none; names compare byte by byte
//	raise    name, token: one statement that inserts the row if it is missing and raises it otherwise, so that the row
//	         is locked from its first touch. Look-then-insert would deadlock on MySQL, where two transactions that
//	         both looked at a missing row each lock the gap that the other wants to fill
//	look     name: the highest token seen
//	locked   what look needs behind it in a transaction
//
// counts says that raise touches no row exactly when the token is stale. MySQL counts rows that changed, so an equal
// token counts as none there; raise keeps the larger of the two instead and look tells them apart. That look must
// lock, for only a locking read is sure to see the latest row in a transaction that has read before.
type statements struct {
	create, raise, look, locked string
	counts                      bool
}

func (d Dialect) statements(table, compare string) (statements, error) {
	const (
		upsert = `INSERT INTO %s AS f (name, token) VALUES (%s)` +
			` ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token %s excluded.token`
		create = `CREATE TABLE IF NOT EXISTS %s (name %s NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`
	)
	switch d {
	case SQLite:
		return statements{
			create: fmt.Sprintf(create, table, "TEXT"),
			raise:  fmt.Sprintf(upsert, table, "?, ?", compare),
			look:   fmt.Sprintf(`SELECT token FROM %s WHERE name = ?`, table),
			counts: true,
		}, nil
	case PostgreSQL:
		return statements{
			create: fmt.Sprintf(create, table, "TEXT"),
			raise:  fmt.Sprintf(upsert, table, "$1, $2", compare),
			look:   fmt.Sprintf(`SELECT token FROM %s WHERE name = $1`, table),
			counts: true,
		}, nil
	case MySQL:
		return statements{
			create: fmt.Sprintf(create, table, "VARBINARY(1024)") + " ENGINE=InnoDB",
			raise: fmt.Sprintf(`INSERT INTO %s (name, token) VALUES (?, ?)`+
				` ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))`, table),
			look:   fmt.Sprintf(`SELECT token FROM %s WHERE name = ?`, table),
			locked: " FOR UPDATE",
		}, nil
	}
	return statements{}, fmt.Errorf("fence: unknown dialect %d: want SQLite, PostgreSQL or MySQL", int(d))
}
