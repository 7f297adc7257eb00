//go:build unix

package memory

import (
	"fmt"
	"os"
	"syscall"
)

// linked returns an error when no folder has the file any more: the system takes writes to it all the same, and
// forgets them at its close. It is called at each write, and allocates nothing.
func linked(fd int, name string) error {
	var s syscall.Stat_t
	switch err := syscall.Fstat(fd, &s); {
	case err != nil:
		return fmt.Errorf("looking at %s: %w", name, err)
	case s.Nlink == 0:
		return &os.PathError{Op: "writing to", Path: name, Err: os.ErrNotExist}
	}
	return nil
}
