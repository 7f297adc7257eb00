package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// axe returns the source of axe-core, installed once into the user's cache as package-lock.json pins it.
func axe(t *testing.T) string {
	t.Helper()
	pins, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	sum := sha256.Sum256(pins)
	home := filepath.Join(base, "punctual", "console", hex.EncodeToString(sum[:6]))
	file := filepath.Join(home, "node_modules", "axe-core", "axe.min.js")
	if source, err := os.ReadFile(file); err == nil {
		return string(source)
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.MkdirTemp(filepath.Dir(home), "making-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(made) }()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(made, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = made
	if said, err := cmd.CombinedOutput(); err != nil {
		environment.SkipOrFail(t, "axe-core cannot be installed, which needs npm and its registry once: "+string(said))
	}
	_ = os.Rename(made, home) // another test may have been faster
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible has axe-core judge the page as it stands.
func (p *tab) accessible(what string) {
	p.t.Helper()
	found, _ := p.eval(`axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(
		r.violations.map((v) => [v.id, v.help, ...v.nodes.slice(0, 3).map((n) =>
			n.html.slice(0, 160) + ' ' + n.failureSummary)])))`).(string)
	var violations [][]string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		p.t.Fatalf("%s: axe says %q: %v", what, found, err)
	}
	for _, v := range violations {
		p.t.Errorf("%s: %s", what, strings.Join(v, ": "))
	}
	if wide := p.eval("document.documentElement.scrollWidth - innerWidth").(float64); wide > 0 {
		p.t.Errorf("%s: it is %v pixels wider than the window", what, wide)
	}
}
