package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/database"
)

// answered is the error of an opening by a URL. Where the server has answered it has a finding, as
// the doctor has it; what it matches stays the same.
func answered(ctx context.Context, err error, connector sqldriver.Connector, to *mysql.Config, asked *Options) error {
	var says *mysql.MySQLError
	if !errors.As(err, &says) || errors.As(err, new(*driver.FindingError)) {
		return err
	}
	o, wrong := asked.withDefaults()
	if wrong != nil {
		return err
	}
	f := driver.Finding{
		Title: "opening", Level: driver.LevelBad, Seen: "the server answered: " + says.Message,
		Why: "the store cannot be used as it is: no lock can be had", Mend: "as the server says; its log may say more",
	}
	switch says.Number {
	case 1045, 1130, 1698:
		f.Title = "login"
		f.Mend = fmt.Sprintf("the right user and password in the URL, mysql://USER:PASSWORD@HOST/DATABASE; SELECT host FROM mysql.user WHERE user = %s says from where the user is admitted, and "+
			"ALTER USER %[1]s@'HOST' IDENTIFIED BY 'PASSWORD' gives the user another one", literal(to.User))
	case 1049:
		f.Title, f.Seen = "database", "the server has no database "+to.DBName
		f.Mend = "CREATE DATABASE " + backquoted(to.DBName) + ", and interlock migrate --store URL; or the name of one that there is in the URL"
	case 1146, 1305:
		f.Title, f.Seen = "tables", fmt.Sprintf("no locks are kept in the database %s under the prefix %s", to.DBName, o.Prefix)
		f.Mend = "interlock migrate --store URL; or the prefix by which they are kept, by prefix= in the URL"
	case 1044, 1142, 1143, 1370:
		f.Title = "rights"
		f.Mend = strings.Join(grants(&o, to.DBName, accountOf(ctx, connector, to.User, says.Message)), "; ")
	case 1040, 1203, 1226:
		f.Code, f.Title = "S7", "connections"
		f.Mend = "a higher limit (SET GLOBAL max_connections, ALTER USER with MAX_USER_CONNECTIONS), or smaller pools: SHOW PROCESSLIST says who has them"
	}
	return &driver.FindingError{Finding: f, Err: err}
}

// accountOf returns the server's name of its user, in the form of statements. If the user has no
// right to the database, the name is in the server's error.
func accountOf(ctx context.Context, c sqldriver.Connector, user, says string) string {
	if _, after, ok := strings.Cut(says, "for user '"); ok { // 'USER'@'HOST' to database
		if name, _, ok := strings.Cut(after, "' to database"); ok {
			return "'" + name + "'"
		}
	}
	db := sql.OpenDB(c)
	defer db.Close()
	if rows, err := results(ctx, db, "select "+database.Account); err == nil && len(rows) == 1 {
		return string(rows[0][0])
	}
	return literal(user)
}

// grants are the statements that give a user all that a technique needs.
func grants(o *Options, base, user string) []string {
	needs := [][2]string{{"SELECT", "version"}, {"SELECT, INSERT, UPDATE", "lock"}, {"SELECT, INSERT, UPDATE, DELETE", "session"}}
	if o.Technique == "session" || o.Technique == "rowlock" {
		needs = [][2]string{{"SELECT", "version"}, {"SELECT, INSERT, UPDATE", "held"}, {"SELECT, INSERT, UPDATE, DELETE", "token"}}
	}
	all := []string{"GRANT EXECUTE ON " + backquoted(base) + ".* TO " + user}
	for _, n := range needs {
		all = append(all, grant(n[0], base, o.Prefix+n[1], user))
	}
	return all
}

// grant is the statement that gives a user rights to a table.
func grant(rights, base, table, user string) string {
	return fmt.Sprintf("GRANT %s ON %s.%s TO %s", rights, backquoted(base), backquoted(table), user)
}

// backquoted is a name as SQL has it.
func backquoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal is a text as SQL has it.
func literal(text string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(text) + "'"
}
