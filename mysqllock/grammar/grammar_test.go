package grammar

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // what the parser makes of literals
	"vitess.io/vitess/go/vt/sqlparser"
)

var (
	tidb   = parser.New()
	vitess = sqlparser.NewTestParser()
)

// refused returns the errors of both grammars. Each accepts some things that MySQL does not have, and the two not the same ones.
func refused(statement string) (all []error) {
	if _, _, err := tidb.Parse(statement, "", ""); err != nil {
		all = append(all, err)
	}
	if _, err := vitess.ParseStrictDDL(statement); err != nil {
		all = append(all, err)
	}
	return all
}

var (
	maria   = regexp.MustCompile(`(?s)/\*M! .*? \*/`)
	mysql   = regexp.MustCompile(`(?s)/\*!80000 (.*?) \*/`)
	comment = regexp.MustCompile(`(?m)--.*$`)
	space   = regexp.MustCompile(`\s+`)
	into    = regexp.MustCompile(`\binto [a-z_]+(?:, [a-z_]+)* from\b`)
	simple  = regexp.MustCompile(`^(?:select|insert|update|delete|call|set|start|commit|rollback)\b`)
	calls   = regexp.MustCompile(`\bcall [^;]*;`)
	asked   = regexp.MustCompile(`^(?:select|call|set session|show|kill) `)
	clause  = regexp.MustCompile(`^(?:.*\b(?:then|else|do|begin|repeat)|declare exit handler for sqlexception begin) (.*)$`)
)

// words returns a statement of the schema as MySQL reads it, on one line and without comments.
func words(statement string) string {
	statement = mysql.ReplaceAllString(maria.ReplaceAllString(statement, ""), "$1")
	return strings.TrimSpace(space.ReplaceAllString(comment.ReplaceAllString(statement, ""), " "))
}

// inside returns the statements that a procedure carries out, without those of its control flow, and without where a SELECT puts what it
// reads, which one of the grammars does not know.
func inside(body string) (all []string) {
	_, body, _ = strings.Cut(body, " begin ")
	for s := range strings.SplitSeq(body, ";") {
		s = strings.TrimSpace(s)
		for !simple.MatchString(s) {
			m := clause.FindStringSubmatch(s)
			if m == nil {
				break
			}
			s = strings.TrimSpace(m[1])
		}
		if simple.MatchString(s) {
			all = append(all, into.ReplaceAllString(s, "from"))
		}
	}
	return all
}

// flow leaves of a procedure what the other grammar knows of control flow.
var flow = strings.NewReplacer(" sql security invoker", "", " resignal;", "", " start transaction;", "", " commit;", "", " rollback;", " set us = 1;",
	" signal sqlstate '22003' set message_text = 'no token is left below 2^53';", " set us = 1;")

// Neither grammar reads a whole procedure: both refuse SQL SECURITY and RESIGNAL, TiDB's SIGNAL, CALL, SELECT … INTO and transactions in one, and vitess' labels
// and REPEAT. So TiDB's reads the control flow, and both every statement in it.
func TestSchema(t *testing.T) {
	b, err := os.ReadFile("../schema001.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), "delimiter //\n")
	if !found {
		t.Fatal("the schema has no delimiter")
	}
	procedures, statements := 0, 0
	for s := range strings.SplitSeq(strings.TrimSuffix(text, "\n//\n"), "\n//\n") {
		s = words(s)
		all := []string{s}
		if strings.HasPrefix(s, "create procedure") {
			procedures++
			if _, _, err := tidb.Parse(calls.ReplaceAllString(into.ReplaceAllString(flow.Replace(s), "from"), "set us = 1;"), "", ""); err != nil {
				t.Errorf("%.60s…: %v", s, err)
			}
			all = inside(s)
		}
		for _, s := range all {
			statements++
			for _, err := range refused(s) {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
	if procedures < 5 || statements < 50 {
		t.Errorf("read %d procedures and %d statements: where are the others?", procedures, statements)
	}
	t.Logf("%d procedures, %d statements", procedures, statements)
}

// What technique session asks is whole in the source, but for names and numbers.
func TestStatementsOfSession(t *testing.T) {
	named := strings.NewReplacer("%x", "7f", "%t", "true", "%[1]s", "x", "%s", "7", "%[3]s", "7", "%d", "7")
	statements := 0
	for _, name := range []string{"getlock", "conn", "conndriver", "conninspect", "rowlock", "intx"} {
		f, err := goparser.ParseFile(token.NewFileSet(), "../"+name+".go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				s, _ := strconv.Unquote(l.Value)
				if asked.MatchString(s) {
					statements++
					for _, err := range refused(words(named.Replace(s))) {
						t.Errorf("%s: %v", s, err)
					}
				}
			}
			return true
		})
	}
	if statements < 10 {
		t.Errorf("read %d statements: where are the others?", statements)
	}
}

// What MySQL does not have is refused by at least one.
func TestWhatIsMariaDBsAlone(t *testing.T) {
	for _, s := range []string{
		"create sequence s increment 32", "insert into t values (1) returning id", "delete from t where id = 1 returning id",
		"set statement max_statement_time = 1 for select 1", "create or replace table t (id int)", "select * from t for update wait 3",
	} {
		if len(refused(s)) == 0 {
			t.Errorf("%s: both take it for MySQL's", s)
		}
	}
}
