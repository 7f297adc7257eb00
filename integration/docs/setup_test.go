package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a PATH of programs, each a script of sh. It has the few tools that .ci/setup itself calls.
type machine map[string]string

// whole is a machine that lacks nothing. Go's compiler is gcc, and what prepares the caches says so.
func whole() machine {
	m := machine{
		"curl": "echo --json",
		"go":   `case $1 in env) echo gcc ;; run) echo "prepared by $*" ;; esac`,
		"gcc":  "exit 0",
		"node": "echo v22.1.0",
	}
	tools := []string{"make", "git", "bash", "zsh", "fish", "chromium", "aws", "npm", "npx", "python3", "pip"}
	for _, name := range tools {
		m[name] = "exit 0"
	}
	return m
}

// setup runs .ci/setup on the machine, and returns what it says and whether it was content.
func (m machine) setup(t *testing.T) (string, bool) {
	t.Helper()
	bin := t.TempDir()
	for name, body := range m {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dirname", "sed", "env", "touch", "chmod"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name + " is not here")
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", ".ci/setup")
	cmd.Dir, cmd.Env = root, []string{"PATH=" + bin, "HOME=" + bin, "BIN=" + bin}
	said, err := cmd.CombinedOutput()
	return string(said), err == nil
}

func TestSetup_ChangesNothingWhereNothingIsMissing(t *testing.T) {
	t.Parallel()
	m := whole()
	m["apt-get"] = `echo "apt-get was called"`
	said, ok := m.setup(t)
	if !ok || said != "prepared by run ./integration/emulator/cmd/emulator -prepare\n" {
		t.Errorf("%v\n%s", ok, said)
	}
}

func TestSetup_ListsAllThatIsMissingInOneMessage(t *testing.T) {
	t.Parallel()
	bare := machine{"go": whole()["go"], "make": "exit 0", "git": "exit 0", "curl": "echo --json", "bash": "exit 0"}
	all := []string{"- zsh, ", "- fish, ", "Chromium", "AWS CLI", "C compiler", "Python", "Node.js", "make short"}
	for _, c := range []struct {
		name  string
		tools machine
		says  []string
	}{
		{"without a package manager", nil, append(slices.Clone(all), "none of apt-get, dnf and brew")},
		{"without root and sudo", machine{"apt-get": "exit 1", "id": "echo 1000"},
			append(slices.Clone(all), "sudo apt-get install zsh fish chromium awscli gcc libc6-dev python3")},
		{"where sudo asks for a password", machine{"dnf": "exit 1", "id": "echo 1000", "sudo": "exit 1"},
			append(slices.Clone(all), "sudo dnf install zsh fish chromium awscli2 gcc glibc-devel python3")},
		{"where packages cannot be installed", machine{"apt-get": "exit 100", "id": "echo 0"},
			append(slices.Clone(all), "apt-get has not installed it")},
		{"where Node.js is too old", machine{"node": "echo v18.20.4", "npm": "exit 0", "npx": "exit 0"},
			[]string{"the one that is here is 18"}},
		{"where Go is too old", machine{"go": `case $1 in list) exit 1 ;; version) echo go version go1.19.8 ;; esac`},
			[]string{"https://go.dev/dl; here is go version go1.19.8"}},
		{"where pip has another name", machine{"python3": "exit 0", "pip3": "exit 0"}, []string{"python3 and pip, "}},
		{"where curl is too old", machine{"curl": "echo --data"}, []string{"- curl 7.82 or later"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := machine{}
			for _, tools := range []machine{bare, c.tools} {
				for name, body := range tools {
					m[name] = body
				}
			}
			said, ok := m.setup(t)
			if ok || strings.Contains(said, "prepared by") {
				t.Errorf("it goes on:\n%s", said)
			}
			for _, want := range c.says {
				if strings.Count(said, want) != 1 {
					t.Errorf("it does not say %q once:\n%s", want, said)
				}
			}
		})
	}
}

func TestSetup_InstallsWhatIsMissing(t *testing.T) {
	t.Parallel()
	m := whole()
	delete(m, "fish")
	delete(m, "chromium")
	m["gcc"] = `[ -e "$BIN/headers" ]`
	m["id"] = "echo 1000"
	m["sudo"] = `case $1 in -n) ;; *) exec "$@" ;; esac`
	// A package manager that makes what it is asked for.
	m["apt-get"] = `case $1 in install) for p in "$@"; do case $p in
		libc6-dev) touch "$BIN/headers" ;;
		fish | chromium) touch "$BIN/$p"; chmod +x "$BIN/$p" ;;
		esac; done ;; esac`
	said, ok := m.setup(t)
	if !ok || !strings.HasSuffix(said, "-prepare\n") {
		t.Errorf("%v\n%s", ok, said)
	}
	for _, want := range []string{"installing fish", "installing chromium", "installing gcc libc6-dev"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("it does not say %q once:\n%s", want, said)
		}
	}
}
