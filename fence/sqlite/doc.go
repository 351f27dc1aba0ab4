// Package sqlite tests package fence on SQLite. It is a module of its own: whoever uses Interlock has no need of that database.
package sqlite
