package console_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
)

// patience is how long anything on a page may take, on a busy machine.
const patience = 20 * time.Second

// browser is a Chromium that ends with the tests, or when this process does: it reads its commands from a
// pipe that no other process holds.
type browser struct {
	to *os.File

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	tabs    map[string]*tab
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// shared is the one of all tests: starting one costs more than most of them.
var shared = sync.OnceValues(start)

// end ends the browser, if one was started.
var end = func() {}

// chromium returns the browser.
func chromium(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		environment.SkipOrFail(t, "a browser is needed; nothing but Go is with -short")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		environment.SkipOrFail(t, "chromium is not installed; Debian has it in a package of that name")
	}
	b, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start() (*browser, error) {
	home, err := os.MkdirTemp("", "console-")
	if err != nil {
		return nil, err
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	args := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + home, "--no-first-run",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
		"--disable-component-update", "--mute-audio", "--lang=en-US",
		"--no-sandbox"} // it sees our own page only, and neither root nor most containers have what a sandbox needs
	cmd := exec.Command("chromium", args...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "TZ=Europe/Berlin")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &browser{to: to, waiting: map[int]chan answer{}, tabs: map[string]*tab{}}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		b.hear(bufio.NewReaderSize(from, 1<<20))
	}()
	end = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its group is its own
		_ = cmd.Wait()
		_, _ = to.Close(), from.Close()
		<-heard
		_ = os.RemoveAll(home)
	}
	return b, nil
}

// hear hands out what the browser says until it ends.
func (b *browser) hear(from *bufio.Reader) {
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &a) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[a.ID]; c != nil && a.ID != 0 {
			delete(b.waiting, a.ID)
			c <- a
		} else if tab := b.tabs[a.Session]; tab != nil {
			tab.note(a)
		}
		b.mu.Unlock()
	}
}

// call sends one command and waits for its answer.
func (b *browser) call(session, method string, params any) (json.RawMessage, error) {
	reply := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = reply
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		text, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case a := <-reply:
		if a.Error != nil {
			return nil, errors.New(a.Error.Message)
		}
		return a.Result, nil
	case <-time.After(3 * patience):
		return nil, fmt.Errorf("%s: the browser does not answer", method)
	}
}

// tab is one page.
type tab struct {
	t       *testing.T
	b       *browser
	session string
	storage string // the browser context: tabs of one share what they store
	width   int

	mu   sync.Mutex
	said []string // warnings, errors and exceptions of the page
}

// open opens address in a tab of its own, whose storage is its own, too. At the test's end, the page must have said
// nothing that a developer would look into: no error, no exception, no breach of its policy.
func (b *browser) open(t *testing.T, address string) *tab {
	t.Helper()
	var made struct{ BrowserContextID string }
	must(t, b, "", "Target.createBrowserContext", nil, &made)
	t.Cleanup(func() {
		must(t, b, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": made.BrowserContextID}, nil)
	})
	return b.tab(t, made.BrowserContextID, address)
}

// secondTab is open for a second tab of the same user.
func (p *tab) secondTab(address string) *tab {
	p.t.Helper()
	return p.b.tab(p.t, p.storage, address)
}

func (b *browser) tab(t *testing.T, storage, address string) *tab {
	t.Helper()
	p := &tab{t: t, b: b, storage: storage}
	var made struct{ TargetID, SessionID string }
	must(t, b, "", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": storage}, &made)
	must(t, b, "", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	p.session = made.SessionID
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(domain+".enable", nil)
	}
	p.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": `addEventListener('securitypolicyviolation',
		(e) => console.error(['POLICY', e.violatedDirective, e.blockedURI, e.sourceFile, e.lineNumber].join(' ')))`})
	p.resize(1600, false)
	p.do("Page.navigate", map[string]any{"url": address})
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.said {
			t.Errorf("the page said: %s", s)
		}
	})
	return p
}

func must(t *testing.T, b *browser, session, method string, params, into any) {
	t.Helper()
	if params == nil {
		params = struct{}{}
	}
	result, err := b.call(session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(result, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// note keeps what a page says of itself.
func (p *tab) note(a answer) {
	var e struct {
		Type  string `json:"type"`
		Args  []struct{ Value, Description any }
		Entry struct{ Source, Level, Text, URL string }

		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	_ = json.Unmarshal(a.Params, &e)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case a.Method == "Runtime.exceptionThrown":
		p.said = append(p.said, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case a.Method == "Runtime.consoleAPICalled" && (e.Type == "error" || e.Type == "warning"):
		for _, said := range e.Args {
			p.said = append(p.said, fmt.Sprint(e.Type, ": ", said.Value, " ", said.Description))
		}
	case a.Method == "Log.entryAdded" && e.Entry.Level == "error":
		if e.Entry.Source == "network" && strings.Contains(e.Entry.Text, "status of 4") {
			return // a refusal, which the page shows
		}
		p.said = append(p.said, e.Entry.Source+": "+e.Entry.Text+" "+e.Entry.URL)
	}
}

// heard waits until the page has said something with text in it.
func (p *tab) heard(text string) {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p.mu.Lock()
		found := slices.ContainsFunc(p.said, func(s string) bool { return strings.Contains(s, text) })
		p.mu.Unlock()
		if found {
			return
		}
	}
	p.t.Errorf("the page never said %q, but %q", text, p.said)
}

// do sends a command to the page.
func (p *tab) do(method string, params any) json.RawMessage {
	p.t.Helper()
	var result json.RawMessage
	must(p.t, p.b, p.session, method, params, &result)
	return result
}

// resize sets the width in pixels and the colour scheme.
func (p *tab) resize(width int, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.width = width
	p.size(tall)
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}})
}

// tall is the height of the window in pixels.
const tall = 900

// size sets the height in pixels.
func (p *tab) size(height int) {
	p.t.Helper()
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": p.width, "height": height,
		"deviceScaleFactor": 1, "mobile": false})
}

// eval returns what a JavaScript expression comes to; promises are awaited.
func (p *tab) eval(expression string) any {
	p.t.Helper()
	v, err := p.try(expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// try is eval that returns an error also when the page goes elsewhere meanwhile.
func (p *tab) try(expression string) (any, error) {
	text, err := p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true,
		"returnByValue": true})
	if err != nil {
		return nil, err
	}
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if out.ExceptionDetails != nil {
		return nil, errors.New(out.ExceptionDetails.Exception.Description)
	}
	return out.Result.Value, nil
}

// quoted quotes s for JavaScript.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}

// await waits until a JavaScript expression is true, on whatever page the tab comes to.
func (p *tab) await(expression string) {
	p.t.Helper()
	wait := fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d
		const look = () => { let is = false; try { is = Boolean(%s) } catch {}
			if (is || Date.now() > end) done(is); else setTimeout(look, 40) }
		look() })`, patience.Milliseconds(), expression)
	ok, err := p.try(wait)
	for range 5 { // the page may have gone elsewhere
		if err != nil {
			ok, err = p.try(wait)
		}
	}
	if ok != true {
		p.shoot("failed-" + strings.ReplaceAll(p.t.Name(), "/", "-"))
		p.t.Fatalf("waited in vain for %s; the page has:\n%v", expression, p.eval("document.body.innerText"))
	}
}

// shows waits until the page shows each text.
func (p *tab) shows(texts ...string) {
	p.t.Helper()
	for _, s := range texts {
		p.await("document.body.innerText.replace(/\\s+/g, ' ').includes(" + quoted(s) + ")")
	}
}

// visit shows a view of the page that is open, loaded.
func (p *tab) visit(hash string) {
	p.t.Helper()
	p.eval("location.hash = " + quoted(hash))
	p.settled()
}

// settled waits until a view has its data.
func (p *tab) settled() {
	p.t.Helper()
	p.await("document.querySelector('main h1') && !document.querySelector('[aria-busy=true]')")
	p.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)))")
}

// named is the element, in the open dialog or else the page, that a person would call so.
func named(name string) string {
	return `[...(document.querySelector('dialog[open]') || document).querySelectorAll(
		'button, a, input, select, textarea, summary')].find((e) => e.checkVisibility() && [
		e.getAttribute('aria-label'), e.textContent, e.labels?.[0]?.firstChild?.textContent].some(
			(x) => x?.trim() === ` + quoted(name) + `))`
}

// click clicks, by the mouse, on what a person would call so.
func (p *tab) click(name string) {
	p.t.Helper()
	p.await(named(name))
	at, ok := p.eval(`(() => { const e = ` + named(name) + `; e.scrollIntoView({ block: 'center' })
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`).([]any)
	if !ok {
		p.t.Fatalf("%q is nowhere", name)
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left",
			"clickCount": 1})
	}
}

// write puts text into the field of that name, in place of what it has, as typing does.
func (p *tab) write(name, text string) {
	p.t.Helper()
	p.await(named(name))
	p.eval(named(name) + ".focus(); " + named(name) + ".select()")
	p.do("Input.insertText", map[string]any{"text": text})
}

// press presses a key, such as Tab.
func (p *tab) press(key string) {
	p.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "ArrowRight": 39}
	text := map[string]string{"Enter": "\r", " ": " "}[key]
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.do("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "text": text,
			"windowsVirtualKeyCode": codes[key]})
	}
}

// shoot writes a picture of the whole page, at most 1,800 pixels of it, into shots/. The window is as high meanwhile,
// so that a long table draws all rows that the picture has.
func (p *tab) shoot(name string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.size(int(p.eval("Math.min(1800, Math.max(innerHeight, document.body.scrollHeight))").(float64)))
	p.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
	if gaps := p.eval(`[...document.querySelectorAll('td.gap')].map((e) => e.getBoundingClientRect())
		.filter((r) => r.bottom > 0 && r.top < innerHeight).length`); gaps != 0.0 {
		p.t.Errorf("the picture %s has rows that are not drawn", name)
	}
	text := p.do("Page.captureScreenshot", map[string]any{"format": "png"})
	p.size(tall)
	err := json.Unmarshal(text, &shot)
	picture, bad := base64.StdEncoding.DecodeString(shot.Data)
	err = errors.Join(err, bad, os.MkdirAll("shots", 0o755),
		os.WriteFile(filepath.Join("shots", name+".png"), picture, 0o644))
	if err != nil {
		p.t.Errorf("the picture %s: %v", name, err)
	}
}
