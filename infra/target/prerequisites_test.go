package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a PATH that holds only stand-ins for the named tools, each of which prints a line
// and exits with a code.
type machine map[string]struct{ says, exit string }

// check runs the script on a machine and returns what it says, and whether it was content.
func (m machine) check(t *testing.T, env []string, args ...string) (string, bool) {
	t.Helper()
	bin := t.TempDir()
	for name, tool := range m {
		body := "#!/bin/sh\necho '" + tool.says + "'\nexit " + tool.exit + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sed, err := exec.LookPath("sed") // which the script itself needs
	if err != nil {
		t.Skip("sed is not here")
	}
	if err := os.Symlink(sed, filepath.Join(bin, "sed")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"../prerequisites.sh"}, args...)...)
	cmd.Env = append([]string{"PATH=" + bin, "HOME=" + bin}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func complete() machine {
	return machine{"go": {"go version go1.26", "0"}, "node": {"v22.1.0", "0"}, "npm": {"11", "0"}, "docker": {"ok", "0"}}
}

func TestACompleteMachineMayDeploy(t *testing.T) {
	t.Parallel()
	if said, ok := complete().check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual"); !ok || said != "" {
		t.Errorf("it says %q", said)
	}
}

func TestLookingAtTheDifferencesNeedsNoDocker(t *testing.T) {
	t.Parallel()
	m := complete()
	delete(m, "docker")
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "diff"); !ok {
		t.Errorf("it says %q", said)
	}
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", ""); ok || !strings.Contains(said, "docker is not here") {
		t.Errorf("for a deploy it says %q", said)
	}
}

func TestWhatADeployLacksIsNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	said, ok := machine{}.check(t, nil, "", "")
	if ok {
		t.Error("it is content with nothing")
	}
	for _, want := range []string{"go is not here", "node is not here", "npm is not here", "docker is not here", "no AWS credentials", "cdk bootstrap", "ISSUER is not set", "AUDIENCE is not set"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestWhatIsThereButWillNotDoIsNamed(t *testing.T) {
	t.Parallel()
	m := complete()
	m["node"] = struct{ says, exit string }{"v18.20.0", "0"}
	m["docker"] = struct{ says, exit string }{"cannot connect", "1"}
	said, ok := m.check(t, []string{"AWS_ACCESS_KEY_ID=x"}, "https://id.example.com", "punctual")
	if ok || !strings.Contains(said, "node is version 18") || !strings.Contains(said, "docker does not answer") || strings.Contains(said, "credentials") {
		t.Errorf("it says %q", said)
	}
}
