package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a PATH that holds only placeholders for the named tools, each of which prints a line
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
	return machine{"go": {"go version go1.26", "0"}, "node": {"v22.1.0", "0"}, "npm": {"11", "0"},
		"docker": {"ok", "0"}}
}

func TestPrerequisites_AcceptACompleteMachine(t *testing.T) {
	t.Parallel()
	if said, ok := complete().check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "dev",
		""); !ok || said != "" {
		t.Errorf("it says %q", said)
	}
}

func TestPrerequisites_NeedNoDockerForADiff(t *testing.T) {
	t.Parallel()
	m := complete()
	delete(m, "docker")
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "dev", "",
		"diff"); !ok {
		t.Errorf("it says %q", said)
	}
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "dev", "", ""); ok ||
		!strings.Contains(said, "docker is not here") {
		t.Errorf("for a deploy it says %q", said)
	}
}

func TestPrerequisites_NameAllThatIsMissing(t *testing.T) {
	t.Parallel()
	said, ok := machine{}.check(t, nil, "", "", "dev", "")
	if ok {
		t.Error("it is content with nothing")
	}
	for _, want := range []string{"go is not here", "node is not here", "npm is not here", "docker is not here",
		"no AWS credentials", "make bootstrap", "ISSUER is not set", "AUDIENCE is not set"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestPrerequisites_NameUnusableTools(t *testing.T) {
	t.Parallel()
	m := complete()
	m["node"] = struct{ says, exit string }{"v18.20.0", "0"}
	m["docker"] = struct{ says, exit string }{"cannot connect", "1"}
	said, ok := m.check(t, []string{"AWS_ACCESS_KEY_ID=x"}, "https://id.example.com", "punctual", "dev", "")
	if ok || !strings.Contains(said, "node is version 18") || !strings.Contains(said, "docker does not answer") ||
		strings.Contains(said, "credentials") {
		t.Errorf("it says %q", said)
	}
}

// Before anything is built, which takes minutes.
func TestPrerequisites_NameMistypedSettings(t *testing.T) {
	t.Parallel()
	const issuer = "https://id.example.com"
	for _, c := range []struct{ issuer, target, settings, want string }{
		{"id.example.com", "dev", "", "ISSUER is 'id.example.com': an https URL"},
		{"http://id.example.com", "prod", "", "an https URL"},
		{"https://", "prod", "", "an https URL"},
		{"https://id.example.com ", "dev", "", "there is a space in it"},
		{issuer, "staging", "", "TARGET is 'staging': one of dev prod emulator"},
		{issuer, "", "", "TARGET is ''"},
		{issuer, "dev prod", "", "TARGET is 'dev prod'"},
		{issuer, "dev", "mial=a@example.com",
			"SETTINGS has 'mial=a@example.com': there is no such setting; there are prefix"},
		{issuer, "dev", "shards", "SETTINGS has 'shards': each is NAME=VALUE"},
		{issuer, "dev", "shards=", "SETTINGS has 'shards='"},
		{issuer, "dev", "=5", "SETTINGS has '=5'"},
		{issuer, "dev", "prefix=ours schedule_quota=5000", ""},
		{issuer, "dev", "region=eu-central-1", "SETTINGS has 'region=eu-central-1': target region account issuer"},
		{issuer, "dev", "auth=saml", "auth is 'saml': token, cognito or iam"},
		{"", "dev", "auth=cognito tenants=acme", ""},
		{"", "prod", "auth=iam", ""},
		{issuer, "dev", "auth=cognito tenants=acme", "ISSUER or AUDIENCE is set"},
		{issuer + "/", "prod", "", ""},
		{"http://127.0.0.1:8000", "emulator", "", ""},
		{issuer, "emulator", "", ""},
	} {
		said, ok := complete().check(t, []string{"AWS_PROFILE=us"}, c.issuer, audienceOf(c.issuer), c.target,
			c.settings)
		if ok != (c.want == "") || !strings.Contains(said, c.want) || strings.Count(said, "\n") > 1 {
			t.Errorf("%+v: it says %q", c, said)
		}
	}
	m := complete()
	m["node"] = struct{ says, exit string }{"nonsense", "0"}
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, issuer, "punctual", "dev", ""); ok ||
		!strings.Contains(said, "node does not say its version") || strings.Count(said, "\n") > 1 {
		t.Errorf("of a strange node it says %q", said)
	}
}

// audienceOf is one where there is an issuer.
func audienceOf(issuer string) string {
	if issuer == "" {
		return ""
	}
	return "punctual"
}

func TestPrerequisites_NeedDockerForTheFleetOnly(t *testing.T) {
	t.Parallel()
	m := complete()
	delete(m, "docker")
	for stacks, needs := range map[string]bool{
		"": true, "--all": true, "*": true, "punctual-dev-fleet": true, "*-data *-fleet": true,
		"*-watch": true, "*-data *-flow": false, "punctual-dev-flow": false,
	} {
		said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "dev", "", "deploy",
			stacks)
		if ok == needs || needs != strings.Contains(said, "docker is not here") {
			t.Errorf("for %q it says %q", stacks, said)
		}
	}
	if said, ok := m.check(t, nil, "https://id.example.com", "punctual", "prod", "", "synth"); !ok {
		t.Errorf("for templates, which need neither docker nor credentials, it says %q", said)
	}
	if said, ok := m.check(t, []string{"AWS_PROFILE=us"}, "http://localhost:1", "punctual", "emulator", ""); !ok {
		t.Errorf("for an emulator, which has no fleet, it says %q", said)
	}
}

func TestPrerequisites_NameTheFlagsOfADeployWithoutATerminal(t *testing.T) {
	t.Parallel()
	said, ok := complete().check(t, []string{"AWS_PROFILE=us"}, "https://id.example.com", "punctual", "dev", "",
		"deploy", "", "nobody")
	if ok || !strings.Contains(said, "--require-approval never") || !strings.Contains(said, "any-change") {
		t.Errorf("it says %q", said)
	}
}

func TestPrerequisites_KnowTheTargetsAndTheirSettings(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../prerequisites.sh")
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	_, _ = Load(func(key string) string { // what it lacks is not of interest
		if key == "target" {
			return "dev"
		}
		switch key {
		case "issuer", "audience", "region", "account": // these have variables of their own
		default:
			asked = append(asked, key)
		}
		return ""
	})
	slices.Sort(asked)
	for name, want := range map[string][]string{"targets": Names(), "known": asked} {
		_, rest, _ := strings.Cut(string(script), "\n"+name+"=\"")
		list, _, _ := strings.Cut(rest, "\"")
		have := strings.Fields(list)
		if name == "known" {
			slices.Sort(have)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s are %v; want %v", name, have, want)
		}
	}
}
