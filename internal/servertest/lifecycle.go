package servertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// leave is how long a server may take to end by itself, and how long what it started may keep its log open after it.
const leave = 10 * time.Second

// Stop asks the server to end (SIGTERM, a PostgreSQL by SIGINT, which waits for no client) and waits until it has; a paused server is resumed for it. One that has not ended
// after ten seconds is killed, which is an error. Stopping a server that is not running does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

func (s *Server) stop() error { return s.endBy(cmp.Or(s.program.end, syscall.SIGTERM)) }

// leave ends for good a server that would leave something behind in the system if it was killed: memory that is shared, of which there are
// only so many pieces.
func (s *Server) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program.quit == 0 {
		return nil
	}
	return s.endBy(s.program.quit)
}

func (s *Server) endBy(sig syscall.Signal) error {
	if s.process.over() {
		return nil
	}
	err := errors.Join(s.process.signal(sig), s.process.resume())
	if err != nil {
		return fmt.Errorf("servertest: cannot stop the server at %s: %w", s.Addr(), err)
	}
	timer := time.NewTimer(leave)
	defer timer.Stop()
	select {
	case <-s.process.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("servertest: the server at %s did not end within %v of its signal and was killed:\n%s", s.Addr(), leave, s.process.log), s.kill())
	}
}

// Kill ends the server at once (SIGKILL), paused or not, and waits until it is gone. What it had not yet written to its
// append-only file is lost. Killing a server that is not running does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if err := s.process.kill(); err != nil {
		return fmt.Errorf("servertest: cannot kill the server at %s: %w", s.Addr(), err)
	}
	<-s.process.done
	return nil
}

// Pause stops the server's process (SIGSTOP): its connections stay open and nothing is answered, until Resume.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.over() {
		return fmt.Errorf("servertest: the server at %s is not running and cannot be paused", s.Addr())
	}
	s.paused = true
	return s.process.pause()
}

// Resume lets a paused server go on (SIGCONT); one that is not paused notices nothing.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.over() {
		return fmt.Errorf("servertest: the server at %s is not running and cannot be resumed", s.Addr())
	}
	s.paused = false
	return s.process.resume()
}

// Restart starts the server again on its port, with its folder and arguments, after stopping it if it still runs, and
// returns when it has loaded its data and accepts connections. A stepped clock stays stepped. The context bounds the start.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	return s.launch(ctx)
}
