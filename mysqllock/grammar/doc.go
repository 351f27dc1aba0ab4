// Package grammar has the tests that MySQL 8 can read what packages mysqllock and shedlock send it. It is a module of its own, since the grammars are
// those of two databases that speak MySQL, with all that these need.
package grammar
