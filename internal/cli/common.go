package cli

// commonFlags are the flags that every command takes.
type commonFlags struct {
	storeFlags
	JSON    bool `help:"Print JSON instead of a table, and on stderr an object in each line: error and status, warning, or notice." name:"json"`
	Verbose bool `short:"v" help:"Say also what the store's driver logs, such as settings of a server that lose locks."`
}
