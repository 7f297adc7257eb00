package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"punctual/shared/contract"
	"punctual/shared/text"
)

//go:embed static
var files embed.FS

// Path is where the page is on the API. Behind API Gateway the version precedes it.
const Path = "/console"

// Settings are what the page gets. The zero value is a page without sign-in, for the laptop.
type Settings struct {
	Issuer   string // of the tokens, by OpenID Connect; "" asks for no sign-in
	Client   string // the page's client id at the issuer; "" says that no sign-in is possible here
	Audience string // whom the issuer shall make tokens for; "" leaves it to the client's settings
	Scope    string // asked for at sign-in; "" is openid alone
	// Origins are those of the issuer's endpoints that are not at the issuer's own origin, such as
	// Cognito's domain of a user pool; none by default.
	Origins []string
	// Signed says that the API takes signatures instead of tokens, which no page can make.
	Signed bool
}

// SettingsOf returns those that a deployment's environment says.
func SettingsOf(env contract.Env) Settings {
	return Settings{Issuer: env.Issuer, Client: env.Console.Client, Audience: env.Console.Audience,
		Scope: env.Console.Scope, Origins: env.Console.Origins, Signed: env.Auth == contract.AuthIAM}
}

// config is what config.json says.
type config struct {
	API      string `json:"api"` // path of the REST API
	Issuer   string `json:"issuer,omitempty"`
	Client   string `json:"client,omitempty"`
	Audience string `json:"audience,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Signed   bool   `json:"signed,omitempty"`
}

// kinds are the media types of the page's files: the system's own table differs from machine to machine.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// Mount serves the page below Path, with the version before it or not, and everything else by rest.
func Mount(s Settings, rest http.Handler) http.Handler {
	page := New(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := strings.TrimPrefix(r.URL.Path, "/v1")
		below, ok := strings.CutPrefix(whole, Path)
		if !ok || below != "" && below[0] != '/' {
			rest.ServeHTTP(w, r)
			return
		}
		if below == "" { // relative addresses need the folder; and not every gateway keeps a trailing slash
			http.Redirect(w, r, r.URL.Path+"/index.html", http.StatusFound)
			return
		}
		http.StripPrefix(strings.TrimSuffix(r.URL.Path, below), page).ServeHTTP(w, r)
	})
}

// file is one of the page, ready to be sent.
type file struct {
	body []byte
	kind string // its media type
	tag  string // its ETag
}

// New serves the page at "/".
func New(s Settings) http.Handler {
	all := map[string]file{}
	root, _ := fs.Sub(files, "static")
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, _ error) error { // what is embedded can be read
		if !d.IsDir() {
			body, _ := fs.ReadFile(root, name)
			all["/"+name] = newFile(name, body)
		}
		return nil
	})
	all["/config.json"] = newFile("config.json",
		text.MustJSON(config{"/v1", s.Issuer, s.Client, s.Audience, s.Scope, s.Signed}))
	all["/"] = all["/index.html"]
	policy := s.policy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the console's files can only be read", http.StatusMethodNotAllowed)
			return
		}
		f, ok := all[r.URL.Path]
		if !ok {
			http.Error(w, "the console has no such file", http.StatusNotFound)
			return
		}
		h.Set("Cache-Control", "no-cache") // a deploy shows at the next load; until then 304
		h.Set("Etag", f.tag)
		h.Set("Content-Type", f.kind)
		if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), f.tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(f.body) // the client may be gone
		}
	})
}

// Has says whether the page has a file at that path of New's.
func Has(name string) bool {
	_, err := fs.Stat(files, path.Join("static", name))
	return name == "/" || name == "/config.json" || err == nil && path.Ext(name) != ""
}

func newFile(name string, body []byte) file {
	sum := sha256.Sum256(body)
	return file{body, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// policy lets the page run and reach what is its own, and talk to the issuer of its tokens.
func (s Settings) policy() string {
	connect := []string{"'self'"}
	for _, address := range append([]string{s.Issuer}, s.Origins...) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			connect = append(connect, u.Scheme+"://"+u.Host)
		}
	}
	slices.Sort(connect[1:])
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src " +
		strings.Join(slices.Compact(connect), " ") +
		"; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
}
