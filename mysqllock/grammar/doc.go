// Package grammar has the test that MySQL 8 can read what package mysqllock sends it. It is a module of its own, since the grammars are
// those of two databases that speak MySQL, with all that these need.
package grammar
