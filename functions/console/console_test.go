package console_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"punctual/functions/console"
	"punctual/shared/contract"
)

func get(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestMount_ServesThePageAtItsPathAndTheAPIElsewhere(t *testing.T) {
	t.Parallel()
	rest := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := console.Mount(console.Settings{}, rest)
	for _, c := range []struct {
		method, target string
		status         int
		kind, location string
	}{
		{"GET", "/console", 302, "text/html", "/console/index.html"},
		{"GET", "/v1/console", 302, "text/html", "/v1/console/index.html"},
		{"GET", "/console/", 200, "text/html", ""},
		{"GET", "/v1/console/index.html", 200, "text/html", ""},
		{"GET", "/v1/console/app.js", 200, "text/javascript", ""},
		{"GET", "/v1/console/core/auth.js", 200, "text/javascript", ""},
		{"GET", "/v1/console/style.css", 200, "text/css", ""},
		{"GET", "/v1/console/icon.svg", 200, "image/svg+xml", ""},
		{"GET", "/v1/console/config.json", 200, "application/json", ""},
		{"HEAD", "/v1/console/app.js", 200, "text/javascript", ""},
		{"GET", "/v1/console/core", 404, "text/plain", ""},
		{"GET", "/v1/console/../jobs", 404, "text/plain", ""},
		{"GET", "/v1/console/none.js", 404, "text/plain", ""},
		{"POST", "/v1/console/app.js", 405, "text/plain", ""},
		{"GET", "/v1/consoles", 418, "", ""},
		{"GET", "/v1/jobs", 418, "", ""},
		{"GET", "/", 418, "", ""},
	} {
		w := get(h, c.method, c.target)
		if w.Code != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.target, w.Code, c.status)
		}
		if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, c.kind) {
			t.Errorf("%s %s: %s, want %s", c.method, c.target, kind, c.kind)
		}
		if to := w.Header().Get("Location"); to != c.location {
			t.Errorf("%s %s: leads to %q, want %q", c.method, c.target, to, c.location)
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("%s %s: has a body", c.method, c.target)
		}
	}
}

func TestPage_ReachesItsOwnAPIAndTheIssuerOnly(t *testing.T) {
	t.Parallel()
	h := console.New(console.Settings{Issuer: "https://id.example.com/pool", Client: "page",
		Origins: []string{"https://signin.example.com", "https://id.example.com"}})
	const want = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"connect-src 'self' https://id.example.com https://signin.example.com; " +
		"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
	for _, target := range []string{"/", "/index.html", "/app.js", "/config.json", "/none"} {
		w := get(h, "GET", target)
		if got := w.Header().Get("Content-Security-Policy"); got != want {
			t.Errorf("%s has the policy\n%s, want\n%s", target, got, want)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", target)
		}
	}
}

func TestConfig_SaysHowToSignInAndNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  contract.Env
		want string
	}{
		"a laptop": {contract.Env{}, `{"api":"/v1"}`},
		"tokens": {contract.Env{Issuer: "https://id.example.com", Bucket: "secret-bucket", Console: contract.ConsoleEnv{
			Client: "page", Scope: "openid punctual:read", Audience: "punctual",
			Origins: []string{"https://x.example"}}},
			`{"api":"/v1","issuer":"https://id.example.com","client":"page","audience":"punctual",` +
				`"scope":"openid punctual:read"}`},
		"signatures": {contract.Env{Auth: contract.AuthIAM}, `{"api":"/v1","signed":true}`},
	} {
		if got := get(console.New(console.SettingsOf(c.env)), "GET", "/config.json").Body.String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPage_IsSentAgainOnlyWhenItHasChanged(t *testing.T) {
	t.Parallel()
	h := console.New(console.Settings{})
	first := get(h, "GET", "/app.js")
	tag := first.Header().Get("Etag")
	if tag == "" || first.Body.Len() == 0 {
		t.Fatalf("the first answer has the tag %q and %d bytes", tag, first.Body.Len())
	}
	second := get(h, "GET", "/app.js", "If-None-Match", tag)
	if second.Code != http.StatusNotModified || second.Body.Len() != 0 {
		t.Errorf("the second answer is %d with %d bytes, want 304 without any", second.Code, second.Body.Len())
	}
	if other := get(h, "GET", "/style.css", "If-None-Match", tag); other.Code != http.StatusOK {
		t.Errorf("another file by that tag: %d, want 200", other.Code)
	}
}

// inline is script or style in markup, which the policy would refuse; raw is markup made of a value.
var (
	inline = regexp.MustCompile(`(?i)<style|\son[a-z]+="|\sstyle="|<script(?:[^>]*)>[^<]`)
	raw    = regexp.MustCompile(`(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser`)
	kept   = regexp.MustCompile(`localStorage|document\.cookie|indexedDB`)
)

func TestSource_MakesNoMarkupOfValuesAndKeepsNoToken(t *testing.T) {
	t.Parallel()
	searched := 0
	err := fs.WalkDir(os.DirFS("static"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "lib/") {
			return err
		}
		searched++
		text, err := os.ReadFile("static/" + name)
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > 120 && strings.HasSuffix(name, ".js") {
				t.Errorf("%s:%d has %d columns", name, i+1, n)
			}
		}
		for what, is := range map[string]*regexp.Regexp{"inline script or style": inline, "raw markup": raw,
			"storage that outlives the tab": kept} {
			if found := is.Find(text); found != nil && !strings.HasSuffix(name, ".css") {
				t.Errorf("%s has %s: %q", name, what, found)
			}
		}
		return err
	})
	if err != nil || searched < 10 {
		t.Fatalf("looked at %d files: %v", searched, err)
	}
}

// later are the modules that are read when their view is first shown.
var later = map[string]bool{
	"core/entry.js": true, "core/graph.js": true, "core/preview.js": true, "core/work.js": true,
	"views/audit.js": true, "views/backfills.js": true, "views/bulk.js": true, "views/dags.js": true,
	"views/deadletters.js": true, "views/usage.js": true,
	"views/editschedule.js": true, "views/limits.js": true, "views/newjob.js": true, "views/operations.js": true,
	"views/pauses.js": true, "views/run.js": true, "views/schedule.js": true, "views/tasks.js": true,
	"views/webhooks.js": true,
}

func TestIndex_PreloadsEachModuleOfTheFirstLoad(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("static/index.html")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(os.DirFS("static"), ".", func(name string, _ fs.DirEntry, err error) error {
		if !strings.HasSuffix(name, ".js") {
			return err
		}
		switch preloaded := strings.Contains(string(index), `"`+name+`"`); {
		case !preloaded && !later[name]:
			t.Errorf("%s is not preloaded: the page would wait for it in a row", name)
		case preloaded && later[name]:
			t.Errorf("%s is preloaded, though it is read later", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
