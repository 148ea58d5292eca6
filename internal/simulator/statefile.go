package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// saveInterval is the least time between two writings of the state file.
const saveInterval = time.Second

// stateFile keeps the state of a simulator in Config.StateFile.
type stateFile struct {
	path  string
	dirty chan struct{} // holds at most one request
}

// openState reads the state file and starts to write it.
func (s *Simulator) openState(path string) error {
	s.state = &stateFile{path: path, dirty: make(chan struct{}, 1)}
	switch raw, err := os.ReadFile(path); { //nolint:gosec // the caller's own file
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("simulator: the state file cannot be read: %w; make it readable, or choose another", err)
	default:
		if err := s.restore(raw); err != nil {
			return fmt.Errorf("simulator: the state file %s cannot be used: %w; move it away to begin with an empty simulator",
				path, err)
		}
	}
	if err := s.writeState(); err != nil {
		return fmt.Errorf("simulator: %w; make its directory writable, or choose another", err)
	}
	s.wg.Go(s.keepState)
	return nil
}

// changed asks for the state to be written. It never waits.
func (s *Simulator) changed() {
	if s.state == nil {
		return
	}
	select {
	case s.state.dirty <- struct{}{}:
	default:
	}
}

// keepState writes after a change, and again as often as saveInterval allows.
func (s *Simulator) keepState() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.state.dirty:
		}
		s.tryWriteState()
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(saveInterval):
		}
	}
}

func (s *Simulator) tryWriteState() {
	if err := s.writeState(); err != nil {
		s.log.Error("the simulator's state is not saved", "error", err)
		s.changed() // tried again
	}
}

// writeState replaces the file as a whole, so that a reader finds the old state or the new one.
func (s *Simulator) writeState() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the state file cannot be written: %w", err)
		}
	}()
	raw, err := json.Marshal(s.save())
	if err != nil {
		return err
	}
	part := s.state.path + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // its mode may be another
		return err
	}
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(part, s.state.path)
}
