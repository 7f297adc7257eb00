package laptop

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"punctual/shared/memory"
	"punctual/shared/telemetry"
)

// open returns the World of a laptop: in memory, or kept in the folder that Options.Data names, which is this
// process's until close.
func (o Options) open(m memory.Options, log *slog.Logger) (world *memory.World, close func(), err error) {
	if o.Data == "" {
		world = memory.New(m)
		return world, world.Close, nil
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, nil, err
	}
	lock := flock.New(filepath.Join(o.Data, "lock"))
	switch mine, err := lock.TryLock(); {
	case err != nil:
		return nil, nil, fmt.Errorf("taking the folder %s: %w", o.Data, err)
	case !mine:
		return nil, nil, fmt.Errorf("another process serves what the folder %s keeps", o.Data)
	}
	m.Released = true // who had received messages has ended: the lock says so
	m.Unkept = func(err error) { log.Error("could not shorten the log", telemetry.Err, err) }
	world, err = memory.Open(o.Data, m)
	if err != nil {
		_ = lock.Unlock() // the process is about to end
		return nil, nil, fmt.Errorf("opening what the folder %s keeps: %w", o.Data, err)
	}
	return world, func() {
		world.Close()
		_ = lock.Unlock()
	}, nil
}
