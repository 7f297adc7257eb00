package laptop

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"punctual/shared/memory"
	"punctual/shared/telemetry"
)

// open returns the World of a laptop: in memory, or kept in the folder that Options.Data names, which is this
// process's until close. lost is called when nothing can be kept any more.
func (o Options) open(m memory.Options, log *slog.Logger, lost func(error)) (
	world *memory.World, close func() error, err error,
) {
	if o.Data == "" {
		world = memory.New(m)
		return world, func() error {
			world.Close()
			return nil
		}, nil
	}
	folder, err := o.folder()
	if err != nil {
		return nil, nil, err
	}
	unlock, err := lock(o.Data)
	if err != nil {
		return nil, nil, err
	}
	m.Released = true // the process that had received messages has ended: the lock says so
	m.Unkept = func(err error) { log.Error("could not shorten the log", telemetry.Err, err) }
	m.Torn = func(path string, at, size int64) {
		log.Warn("cut off the unfinished end of a record, which no call was answered by", "file", path, "at", at,
			"bytes", size)
	}
	m.Lost = func(err error) {
		log.Error("nothing can be kept any more; the process ends", telemetry.Err, err)
		lost(fmt.Errorf("nothing can be kept in %s any more: %w", o.Data, err))
	}
	world, err = memory.OpenFolder(folder, m)
	if err != nil {
		unlock()
		err = fmt.Errorf("opening what the folder %s keeps: %w", o.Data, err)
		if errors.Is(err, memory.ErrDamaged) {
			err = fmt.Errorf("%w\npunctual data check %s shows what can be read, and punctual data repair saves it",
				err, o.Data)
		}
		return nil, nil, err
	}
	return world, func() error {
		world.Close()
		unlock()
		if err := world.Failed(); err != nil {
			return fmt.Errorf("the folder %s may lack the last changes: %w", o.Data, err)
		}
		return nil
	}, nil
}

// folder is where the files of Options.Data are.
func (o Options) folder() (memory.Folder, error) {
	folder, err := memory.Dir(o.Data)
	if err == nil && o.disk != nil {
		folder = o.disk(folder)
	}
	return folder, err
}

// lock takes a folder for this process.
func lock(data string) (unlock func(), err error) {
	l := flock.New(filepath.Join(data, "lock"))
	switch mine, err := l.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("taking the folder %s: %w", data, err)
	case !mine:
		return nil, fmt.Errorf("another process serves what the folder %s keeps", data)
	}
	return func() { _ = l.Unlock() }, nil // the end of the process unlocks it, too
}

// CheckData reads what a folder of Options.Data keeps and changes nothing. Damage is no error. No process may
// serve it.
func CheckData(data string) (memory.Survey, error) { return withData(data, memory.Check) }

// RepairData writes all that can be read of a damaged folder into new files, after copying the old ones into a folder
// within it. No process may serve it.
func RepairData(data string) (memory.Survey, error) {
	return withData(data, func(path string) (memory.Survey, error) { return memory.Repair(path, time.Now()) })
}

func withData(data string, do func(path string) (memory.Survey, error)) (memory.Survey, error) {
	if info, err := os.Stat(data); err != nil || !info.IsDir() {
		return do(data) // which says what is wrong
	}
	unlock, err := lock(data)
	if err != nil {
		return memory.Survey{}, err
	}
	defer unlock()
	return do(data)
}

// unwritable says in words why nothing can be kept now; "" if something can.
func unwritable(world *memory.World) string {
	err := world.Writable()
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ENOSPC):
		return "the disk that keeps the data is full"
	}
	return "the data cannot be kept: " + err.Error()
}
