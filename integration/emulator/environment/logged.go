package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Logged starts a program that ends with t, and with this process, and writes what it says to the file log. Where t
// fails, its log shows the end of that file. environ is the program's whole environment.
func Logged(t *testing.T, name, program string, environ ...string) (cmd *exec.Cmd, log string) {
	t.Helper()
	cmd, end, err := Tied(program)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		end()
		t.Fatal(err)
	}
	cmd.Env = environ
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		end()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = cmd.Wait() // it may have ended already
		_ = file.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, tail(file.Name()))
		}
	})
	return cmd, file.Name()
}
