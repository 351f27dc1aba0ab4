//go:build linux || darwin

package torture

import (
	"context"
	"database/sql"
	"errors"
)

// raiseShedLock starts a database with ShedLock's table.
func (s *servers) raiseShedLock(ctx context.Context, name string) (err error) {
	const columns = "(name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL)"
	if s.shedlock = true; name == ShedPostgres {
		if s.postgres, err = raisePostgres(ctx, Postgres); err == nil {
			err = query(ctx, s.postgres.primary, "create table shedlock "+columns)
		}
	} else if s.mariadb, err = raiseMariaDB(ctx); err == nil {
		err = atMariaDB(s.mariadb, "root", func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, "create table shedlock "+columns)
			return err
		})
	}
	if err != nil && (s.postgres != nil || s.mariadb != nil) {
		err = errors.Join(err, s.close())
	}
	return err
}
