package shedlock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// code is what the server answered: the SQLSTATE of an error, and of MySQL and MariaDB the number,
// too. "" is no answer.
func code(err error) string {
	var my *mysql.MySQLError
	var e interface{ SQLState() string } // pgx's, or another client's
	switch {
	case errors.As(err, &my):
		return fmt.Sprintf("%s %d", my.SQLState[:], my.Number)
	case errors.As(err, &e):
		return e.SQLState()
	}
	return ""
}

var (
	lost = lazyregexp.New(`^40(001|P01)| 1020$`) // to another one, and rolled back
	// The server crashed or could not say; a pooler has lost it; the server shuts down, could not
	// commit, or the connection or the statement was killed, perhaps while it committed.
	unsaid  = lazyregexp.New(`^(57P02|40003|08...)$| (1053|1180|1317|1927|1969|3024)$`)
	doubled = lazyregexp.New(`^23505| 1062$`) // the row is there
	strange = lazyregexp.New(`^42704| 1193$`) // a parameter of the URL that the server was asked for

	// What certain answers mean, and what would be right.
	meanings = []struct {
		codes *lazyregexp.Regexp
		kind  error
		want  string
	}{
		{lazyregexp.New(`^42(P01|S02)`), driver.ErrRefused, missing},
		{strange, driver.ErrRefused, "what is neither a parameter of ours nor one of the client is asked of the server, which does not know it"},
		{lazyregexp.New(`^42501| 114[23]$`), driver.ErrRefused, "the user needs SELECT, INSERT and UPDATE of table :table"},
		{lazyregexp.New(`^28| 1044$`), driver.ErrRefused, "want a user that there is, with its password, whom the server admits from here to the database"},
		{lazyregexp.New(`^3D| 1049$`), driver.ErrRefused, "want a database that there is"},
		{lazyregexp.New(`^(2[23]|42)`), driver.ErrRefused, "want what the server can do"},
		{lazyregexp.New(`^53[^3]| (1021|1114)$`), driver.ErrNotSent, driver.ErrUnable.Error()},
		{lazyregexp.New(`^25006| (1290|1792|1836)$`), driver.ErrNotSent, "the server is read-only: want its primary"},
	}
)

// unknown reports whether nobody can say what came of a statement: there was no answer, or one that
// tells of the connection alone. Package sql has taken another connection for one that had ended
// before it.
func unknown(err error) bool {
	var dial *net.OpError
	c := code(err)
	return unsaid.MatchString(c) || c == "" && !errors.Is(err, sqldriver.ErrBadConn) && !pgconn.SafeToRetry(err) && (!errors.As(err, &dial) || dial.Op != "dial")
}

// ask makes a statement, for as long as an answer may take; again, where it lost to another one.
// What is certain is named, as the contract has it: what the server answers with an error, it has
// rolled back.
func (t *table) ask(ctx context.Context, statement func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.options.Timeout)
	defer cancel()
	err := statement(ctx)
	for tried := 0; tried < 10 && ctx.Err() == nil && lost.MatchString(code(err)); tried++ {
		err = statement(ctx)
	}
	if err == nil || unknown(err) {
		return err
	}
	for _, m := range meanings {
		if m.codes.MatchString(code(err)) {
			err = fmt.Errorf("%w: %s: %w", m.kind, t.sql(m.want), err)
			if m.codes == strange {
				err = &driver.URLError{Err: err}
			}
			return err
		}
	}
	if errors.Is(err, sqldriver.ErrBadConn) { // rejectReadOnly has the client say no more
		return fmt.Errorf("%w: the server ends each connection, or is read-only: want its primary: %w", driver.ErrNotSent, err)
	}
	return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrRefused, fmt.Sprintf(format, args...))
}

func refusedName(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrName, fmt.Sprintf(format, args...))
}
