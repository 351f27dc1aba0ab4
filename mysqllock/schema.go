package mysqllock

import (
	_ "embed" // the schema
	"strings"
)

// schema001 makes everything in an empty database. A schema002 would bring what it made to the next version.
//
//go:embed schema001.sql
var schema001 string

// statements returns what makes the tables and procedures, one statement each. A procedure is carried out in the sql_mode that it was
// made in, so that is set before; the connection is of no more use to others.
func statements(prefix string) []string {
	_, text, _ := strings.Cut(schema001, "delimiter //\n")
	all := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "interlock_", prefix), "\n//\n"), "\n//\n")
	return append([]string{"set sql_mode = 'STRICT_ALL_TABLES'"}, all...)
}
