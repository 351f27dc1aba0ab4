package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type manCommand struct{}

// Run prints the page of the manual, interlock(1), from the same table of commands and flags as the
// help.
func (manCommand) Run(t terminal, k *kong.Kong) error {
	version, _ := versions()
	p := &manPage{}
	p.line(`.TH INTERLOCK 1 "" "interlock %s"`, roff(version))
	p.line(".SH NAME")
	p.line(`interlock \- run a command under a lock, and see who holds and waits`)
	p.line(".SH SYNOPSIS")
	for _, command := range k.Model.Leaves(true) {
		p.line(".B interlock %s", roff(command.Path()))
		p.line("%s", arguments(command))
		p.line(".br")
	}
	p.line(".SH DESCRIPTION")
	p.text("interlock run NAME -- command runs a command while this machine, or this fleet, holds the lock NAME. It waits in order, passes stdin, signals and the exit status through, and when " +
		"the lock is lost it ends the command with everything that the command has started, before another one gets in. The other commands show who holds and who waits.")
	p.text("A lock lives in a store: a folder of this machine, or a server that the whole fleet uses. --store, --store-file and the environment name it; without them it is the embedded store of " +
		"this user, /var/lib/interlock for root and ~/.local/state/interlock for others, which are not the same.")
	p.line(".SH OPTIONS")
	p.text("Every command takes these.")
	p.flags(k.Model.Flags)
	p.line(".SH COMMANDS")
	for _, command := range k.Model.Leaves(true) {
		p.line(".SS interlock %s %s", roff(command.Path()), arguments(command))
		p.text(command.Help)
		detail, _, _ := strings.Cut(command.Detail, "Exit status:") // which has a section
		detail, _, _ = strings.Cut(detail, columnsTitle)            // and so have these
		p.text(detail)
		for _, a := range command.Positional {
			p.item(`\fI`+roff(strings.ToUpper(a.Name))+`\fR`, a.Help)
		}
		p.flags(command.Flags)
	}
	p.line(".SH COLUMNS")
	for _, c := range columns {
		p.item(`\fB`+c.name+`\fR`, strings.ReplaceAll(c.means, "\n", " ")+".")
	}
	p.line(".SH STORES")
	p.text(storesTitle)
	for _, k := range knownStores() {
		p.item(`\fB`+roff(k.form)+`\fR`, k.what+".")
	}
	p.line(".PP")
	p.text(storesMore)
	p.line(".SH EXIT STATUS")
	for _, s := range statuses {
		p.item(`\fB`+roff(s.status)+`\fR`, s.means+".")
	}
	p.line(".PP")
	p.text(ownStatus)
	p.line(".SH ENVIRONMENT")
	for _, f := range k.Model.Flags {
		for _, env := range f.Envs {
			p.item(`\fB`+roff(env)+`\fR`, "What --"+f.Name+" says, unless that is given: "+f.Help)
		}
	}
	for _, env := range environment {
		p.item(`\fB`+roff(env.name)+`\fR`, env.means)
	}
	p.line(".SH EXAMPLES")
	for _, e := range examples {
		p.text(e.what)
		p.line(".PP\n.nf\n.RS")
		p.line("%s", roff(e.line))
		p.line(".RE\n.fi")
	}
	p.line(".SH SEE ALSO")
	p.line(".BR flock (1),\n.BR timeout (1),\n.BR crontab (5)")
	_, err := io.WriteString(t.out, p.String())
	return err
}

var environment = []struct{ name, means string }{
	{envName, "Set for the command of run and elect: the lock's name."},
	{envFence, "Set for the command: the token, a number that grows with every holder of the name. It is 0 for --shared and --permits, and where the store draws none."},
	{envHeld, "Set for the command: the leases of the runs around it and its own, one to a line, as name, token and store with tabs between them. A run inside another one reads it, and refuses to wait for itself."},
}

var examples = []struct{ what, line string }{
	{"One at a time on this machine:", "interlock run backup -- /usr/local/bin/backup"},
	{"Once on a fleet whose clocks differ by less than a minute, from the cron of every machine:", "interlock run --quiet --try --min-hold 1m \\\n    --store-file /etc/interlock/store report -- report"},
	{"Who holds, and who waits:", "interlock ls"},
}

// manPage is a page in the macros of man(7).
type manPage struct{ strings.Builder }

// line writes a line as it is.
func (p *manPage) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes paragraphs. One that is indented stays as it is.
func (p *manPage) text(s string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		switch {
		case strings.HasPrefix(paragraph, "  "):
			p.line(".PP\n.nf\n%s\n.fi", roff(strings.TrimRight(paragraph, "\n")))
		case paragraph != "":
			p.line(".PP\n%s", roff(paragraph))
		}
	}
}

// item writes a term and what it means.
func (p *manPage) item(term, means string) { p.line(".TP\n%s\n%s", term, roff(means)) }

func (p *manPage) flags(flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		var names []string
		for _, name := range spellings(f) {
			names = append(names, `\fB`+roff(name)+`\fR`)
		}
		term := strings.Join(names, ", ")
		if !f.IsBool() {
			term += `=\fI` + roff(f.FormatPlaceHolder()) + `\fR`
		}
		p.item(term, f.Help)
	}
}

// arguments are the arguments of a command, as a synopsis has them.
func arguments(command *kong.Node) string {
	var words []string
	for _, a := range command.Positional {
		word := `\fI` + roff(strings.ToUpper(a.Name)) + `\fR`
		if a.Passthrough {
			word = `\-\- ` + word
		}
		if a.IsCumulative() {
			word += "…"
		}
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(append([]string{`[\fIflags\fR]`}, words...), " ")
}

// roff writes text so that roff shows it as it is: a dash as a person would type it, and no line
// begins a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
