package environment

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// watched runs a program in the place of the shell, beside a watcher that reads a pipe which only
// the process that started it holds open: when that one is gone, so is the program, and all of
// its group.
const watched = `(cat <&3 >/dev/null; kill -9 -$$) & exec 3<&-; exec "$0" "$@"`

// Tied returns a command that ends when this process does, however that comes about: a program
// that a killed test leaves behind would take the messages of the next one's queues. Its process
// is the program's. Call end when it is not needed any more: it ends it and all it started.
func Tied(name string, args ...string) (cmd *exec.Cmd, end func(), err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command("/bin/sh", append([]string{"-c", watched, name}, args...)...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, func() {
		if cmd.Process != nil {
			// The group is there until the watcher is gone, too: this hits nobody else.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		_ = errors.Join(theirs.Close(), ours.Close())
	}, nil
}
