package zklock

import "github.com/interlock-go/interlock/driver"

// Once is New by one try.
var Once = newDriver

// SessionOf is the number and the password of the servers' session behind a session.
func SessionOf(d driver.Driver, id string) (int64, []byte) {
	for _, s := range d.(*Driver).sessions.All() {
		if s.id == id {
			return s.client.Session()
		}
	}
	return 0, nil
}

// Faulty says what is wrong with a version of ZooKeeper in an ensemble.
var Faulty = faulty

// Many says how many names are many for the doctor.
func Many(d driver.Driver, n int) { d.(*Driver).many = n }
