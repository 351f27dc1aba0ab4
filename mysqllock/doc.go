// Package mysqllock keeps locks in MariaDB and MySQL. So far it has the tables and procedures of technique rows, and no driver that calls
// them.
package mysqllock
