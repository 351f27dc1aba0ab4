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

// statements are what a table of fences is asked.
//
//	create   the table, if there is none; names compare byte by byte
//	insert   name, token: the row of a name, if there is none
//	raise    token, name, token: touches a row if there is one and the token is not stale, and locks it
//	look     name: the highest token seen
//	lock     the same, and locks the row
type statements struct{ create, insert, raise, look, lock string }

func (d Dialect) statements(table string) (statements, error) {
	var name, insert string            // the type of names, and how to insert what may be there
	parameters := []any{"?", "?", "?"} // the first, second and third
	forUpdate := " FOR UPDATE"
	switch d {
	case SQLite:
		name, insert = "TEXT", "INSERT INTO %s (name, token) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
		forUpdate = "" // one writer at a time: the raise before it, though it touched nothing, has locked everything
	case PostgreSQL:
		name, insert = "TEXT", "INSERT INTO %s (name, token) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
		parameters = []any{"$1", "$2", "$3"}
	case MySQL:
		name, insert = "VARBINARY(1024)", "INSERT IGNORE INTO %s (name, token) VALUES (%s, %s)"
	default:
		return statements{}, fmt.Errorf("fence: unknown dialect %d: want SQLite, PostgreSQL or MySQL", int(d))
	}
	format := func(query string, parameters ...any) string {
		return fmt.Sprintf(query, append([]any{table}, parameters...)...)
	}
	s := statements{
		create: format("CREATE TABLE IF NOT EXISTS %s (name " + name + " NOT NULL PRIMARY KEY, token BIGINT NOT NULL)"),
		insert: format(insert, parameters[:2]...),
		raise:  format("UPDATE %s SET token = %s WHERE name = %s AND token <= %s", parameters...),
		look:   format("SELECT token FROM %s WHERE name = %s", parameters[0]),
	}
	s.lock = s.look + forUpdate
	if d == MySQL {
		s.create += " ENGINE=InnoDB" // the only usual one with row locks
	}
	return s, nil
}
