package environment

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// watched runs a program in place of the shell, with a watcher that reads a pipe which only the
// starting process holds open: when that process is gone, the watcher kills the program and its
// group.
const watched = `(cat <&3 >/dev/null; kill -9 -$$) & exec 3<&-; exec "$0" "$@"`

// Tied returns a command that ends when this process does, however that comes about: a program left
// by a killed test would take the messages of the next test. Call end when it is not needed any
// more: it ends the program and all that it started.
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
			// The group exists until the watcher is gone, too, so this hits no other process.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		_ = errors.Join(theirs.Close(), ours.Close())
	}, nil
}
