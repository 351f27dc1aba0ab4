package mysqllock

// Alone judges a server by one of its settings.
func Alone(name, value string) error { return alone([][][]byte{{[]byte(name), []byte(value)}}) }
