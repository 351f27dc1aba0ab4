package servertest_test

import (
	stdsql "database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/servertest"
)

// maria opens the database test as the superuser.
func maria(t *testing.T, s *servertest.Server) *stdsql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.Logger = "root", "tcp", s.Addr(), "test", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := stdsql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func askMaria(t *testing.T, s *servertest.Server, query string) (got string, err error) {
	t.Helper()
	if err = maria(t, s).QueryRowContext(t.Context(), query).Scan(&got); errors.Is(err, stdsql.ErrNoRows) {
		err = nil
	}
	return got, err
}
