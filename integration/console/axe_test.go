package console_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/integration/emulator/environment"
)

// axe returns the source of axe-core, installed once into the user's cache as package-lock.json pins it.
func axe(t *testing.T) string {
	t.Helper()
	modules, err := environment.InstallNode(t.Context(), ".")
	if err != nil {
		environment.SkipOrFail(t, "axe-core cannot be installed, which needs npm and its registry once: "+err.Error())
	}
	source, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible has axe-core check the page as it is.
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

// fits holds that nothing is beyond the side of the window but in what scrolls, that tables show their columns,
// and that no time or status is cut.
func (p *tab) fits(what string) {
	p.t.Helper()
	beyond := p.eval(`[...document.querySelectorAll('body *')].filter((e) => !e.closest('.graph, pre, .hidden, .skip') &&
		e.getBoundingClientRect().right > innerWidth + 1)
		.map((e) => e.tagName + ' ' + e.textContent.slice(0, 40)).join('; ')`)
	if beyond != "" {
		p.t.Errorf("%s: beyond the side of the window is %v", what, beyond)
	}
	cut := p.eval(`[...document.querySelectorAll('.scroll, .long :is(td, th):has(time, .status)')].filter((e) =>
		e.checkVisibility() && e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 60)).join('; ')`)
	if cut != "" {
		p.t.Errorf("%s: cut is %v", what, cut)
	}
}
