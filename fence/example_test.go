package fence_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Rows of an application's own tables, guarded by a name. The guard is the first statement of the transaction, so it is
// the claim as well.
func ExampleTable_Do() {
	ctx := context.Background()
	db, stop := exampleDB(`CREATE TABLE coupons (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)`, `INSERT INTO coupons VALUES (42, 10)`)
	defer stop()
	fences, err := fence.NewTable(fence.PostgreSQL, "fence")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, fences.Schema()); err != nil {
		log.Fatal(err)
	}

	sell := func(token uint64) error {
		return fences.Do(ctx, db, "coupons/42", token, func(tx *sql.Tx) error {
			var left int
			if err := tx.QueryRowContext(ctx, `SELECT n FROM coupons WHERE id = 42`).Scan(&left); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `UPDATE coupons SET n = $1 WHERE id = 42`, left-1)
			return err
		})
	}
	fmt.Println(sell(33))
	fmt.Println(sell(34))
	fmt.Println(sell(33))

	var left int
	if err := db.QueryRowContext(ctx, `SELECT n FROM coupons WHERE id = 42`).Scan(&left); err != nil {
		log.Fatal(err)
	}
	fmt.Println(left, "left")
	// Output:
	// <nil>
	// <nil>
	// fence: token 33 is stale: "coupons/42" has seen 34 from a later holder
	// 8 left
}

// One row that carries its own fence. The claim and the write are the same statement, with and without content; where
// no row is touched, Check says whether the token is to blame.
func Example_sameRow() {
	ctx := context.Background()
	db, stop := exampleDB(`CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER NOT NULL)`, `INSERT INTO doc VALUES (7, 'old', 0)`)
	defer stop()

	// guarded runs an UPDATE of row 7 that ends in "AND fence <= $1".
	guarded := func(token uint64, query string, args ...any) error {
		if err := fence.Valid(token); err != nil {
			return err
		}
		res, err := db.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
		var highest uint64
		if err := db.QueryRowContext(ctx, `SELECT fence FROM doc WHERE id = 7`).Scan(&highest); err != nil {
			return err // sql.ErrNoRows: there is no such document
		}
		return fence.Check("doc/7", highest, token)
	}
	claim := func(token uint64) error {
		return guarded(token, `UPDATE doc SET fence = $1 WHERE id = 7 AND fence <= $1`, token)
	}
	write := func(token uint64, body string) error {
		return guarded(token, `UPDATE doc SET body = $2, fence = $1 WHERE id = 7 AND fence <= $1`, token, body)
	}

	fmt.Println(claim(33), write(33, "by the first"))
	fmt.Println(claim(34)) // from here on the row is the second holder's to read
	fmt.Println(write(33, "by the first again"))
	fmt.Println(write(34, "by the second"))
	fmt.Println(write(0, "by a reader"))
	// Output:
	// <nil> <nil>
	// <nil>
	// fence: token 33 is stale: "doc/7" has seen 34 from a later holder
	// <nil>
	// fence: token 0 is no token: only a mutex, a write lock or a leadership has one
}

// A service that lets only the latest holder print. Its mark may forget with the process: so does the printer.
func ExampleHandler() {
	var printer fence.Mark
	server := httptest.NewServer(fence.Handler(
		func(*http.Request) *fence.Mark { return &printer },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "printed") }),
	))
	defer server.Close()

	for _, token := range []uint64{33, 34, 33} {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("page"))
		if err != nil {
			log.Fatal(err)
		}
		if err := fence.SetHeader(req.Header, token); err != nil {
			log.Fatal(err)
		}
		res, err := server.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		_ = res.Body.Close()
		fmt.Printf("%d: %s, highest seen %q\n", token, res.Status, res.Header.Get(fence.Header))
	}
	// Output:
	// 33: 200 OK, highest seen ""
	// 34: 200 OK, highest seen ""
	// 33: 412 Precondition Failed, highest seen "34"
}

// A service whose state is in a database keeps the tokens there too, and raises them in the transaction of the effect.
func ExampleWriteError() {
	db, stop := exampleDB(`CREATE TABLE doc (id INTEGER PRIMARY KEY, body TEXT NOT NULL)`, `INSERT INTO doc VALUES (7, '')`)
	defer stop()
	fences, err := fence.NewTable(fence.PostgreSQL, "fence")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.Exec(fences.Schema()); err != nil {
		log.Fatal(err)
	}
	put := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := fence.FromHeader(r.Header)
		if err == nil {
			err = fences.Do(r.Context(), db, "doc/7", token, func(tx *sql.Tx) error {
				_, err := tx.Exec(`UPDATE doc SET body = $1 WHERE id = 7`, r.FormValue("body"))
				return err
			})
		}
		if err != nil {
			fence.WriteError(w, err)
		}
	})

	for _, token := range []string{"34", "33", ""} {
		r := httptest.NewRequest(http.MethodPut, "/doc/7?body=new", nil)
		if token != "" {
			r.Header.Set(fence.Header, token)
		}
		w := httptest.NewRecorder()
		put(w, r)
		fmt.Printf("%q: %d, highest seen %q\n", token, w.Code, w.Header().Get(fence.Header))
	}
	// Output:
	// "34": 200, highest seen ""
	// "33": 412, highest seen "34"
	// "": 428, highest seen ""
}

// exampleDB is a database of a server of its own, which stop stops.
func exampleDB(statements ...string) (db *sql.DB, stop func()) {
	s, err := servertest.StartPostgres(context.Background(), servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if db, err = sql.Open("pgx", s.URL()); err != nil {
		log.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			log.Fatal(err)
		}
	}
	return db, func() { _, _ = db.Close(), s.Close() }
}
