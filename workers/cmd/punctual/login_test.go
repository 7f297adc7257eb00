package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// issuer signs people in by the device flow. Its tokens live for as long as lives says.
type issuer struct {
	*httptest.Server
	asked, given atomic.Int64 // of the token endpoint: requests, and tokens
	lives        atomic.Int64 // seconds
	refuses      atomic.Bool
}

func issues(t *testing.T) *issuer {
	t.Helper()
	i := new(issuer)
	i.lives.Store(3600)
	answer := func(w http.ResponseWriter, status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"issuer": i.URL, "token_endpoint": i.URL + "/token",
			"device_authorization_endpoint": i.URL + "/device"})
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "cli" || r.FormValue("scope") != "openid offline_access" ||
			r.FormValue("audience") != "punctual" {
			t.Errorf("asked for a device by %v", r.Form)
		}
		answer(w, 200, map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "interval": 1, "expires_in": 60,
			"verification_uri": i.URL + "/activate"})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		n := i.asked.Add(1)
		device := r.FormValue("grant_type") == "urn:ietf:params:oauth:grant-type:device_code"
		switch {
		case i.refuses.Load():
			answer(w, 400, map[string]any{"error": "access_denied"})
		case device && n == 1:
			answer(w, 400, map[string]any{"error": "authorization_pending"})
		case device || r.FormValue("refresh_token") == "again":
			answer(w, 200, map[string]any{"access_token": fmt.Sprint("token-", i.given.Add(1)), "token_type": "Bearer",
				"refresh_token": "again", "expires_in": i.lives.Load()})
		default:
			answer(w, 400, map[string]any{"error": "invalid_grant"})
		}
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// takes is an API that lists nothing and notes the Authorization of each request.
func takes(t *testing.T, note func(*http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[],"next_cursor":null}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestLogin_SignsInByTheDeviceFlowAndKeepsTheToken(t *testing.T) {
	t.Parallel()
	i, seen := issues(t), ""
	url := takes(t, func(r *http.Request) { seen += r.Header.Get("Authorization") + ";" })
	config := file(t, fmt.Sprintf("current: prod\ncontexts:\n  prod:\n    url: %s\n"+
		"    oidc: {issuer: %s, client_id: cli, audience: punctual}\n  other: {url: %s}\n", url, i.URL, url))
	try := func(args ...string) said {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--config", config}, args...), nil, &out, &errs)
		return said{code, out.String(), errs.String()}
	}
	if s := try("ls"); s.code != exitForbidden || !strings.Contains(s.errs, "punctual login") || seen != "" {
		t.Errorf("before: %+v, seen %q", s, seen)
	}
	s := try("login")
	if s.code != exitDone || !strings.Contains(s.errs, i.URL+"/activate\nand type ABCD-EFGH") ||
		!strings.Contains(s.out, "signed in to prod") || strings.Contains(s.out+s.errs, "token-1") {
		t.Fatalf("%+v", s)
	}
	kept := filepath.Join(filepath.Dir(config), "sessions", "prod.json")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if s := try("ls"); s.code != exitDone || seen != "Bearer token-1;" {
		t.Errorf("after: %+v, seen %q", s, seen)
	}
	// An expired token is exchanged for a new one, which is kept.
	expire := func() {
		t.Helper()
		text, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		var n session
		if err := json.Unmarshal(text, &n); err != nil {
			t.Fatal(err)
		}
		n.Token.Expiry = time.Now().Add(-time.Hour)
		if err := n.write(kept); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	for range 2 {
		seen = ""
		if s := try("ls"); s.code != exitDone || seen != "Bearer token-2;" {
			t.Errorf("expired: %+v, seen %q", s, seen)
		}
	}
	expire()
	i.refuses.Store(true)
	seen = ""
	if s := try("ls"); s.code != exitForbidden || !strings.Contains(s.errs, "punctual login") || seen != "" {
		t.Errorf("refused: %+v, seen %q", s, seen)
	}
	if s := try("login"); s.code != exitForbidden || !strings.Contains(s.errs, "access_denied") {
		t.Errorf("refused: %+v", s)
	}
	// The token is for that URL and issuer only.
	for _, other := range []string{strings.Replace(i.URL, "127.0.0.1", "localhost", 1), i.URL + "/"} {
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		changed := file(t, strings.Replace(string(text), "issuer: "+i.URL, "issuer: "+other, 1))
		if err := os.Rename(changed, config); err != nil {
			t.Fatal(err)
		}
		if s := try("ls"); s.code != exitForbidden || !strings.Contains(s.errs, "nobody is signed in") {
			t.Errorf("of another issuer: %+v", s)
		}
		if err := os.WriteFile(config, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s := try("logout"); s.code != exitDone {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("it is kept after logout: %v", err)
	}
	if s := try("logout"); s.code != exitDone || s.out != "nobody was signed in to prod\n" {
		t.Errorf("a second logout: %+v", s)
	}
	for words, args := range map[string][]string{
		"a context with oidc": {"--context", "other", "login"},
		"no context":          {"--context", "nowhere", "login"},
	} {
		if s := try(args...); s.code != exitUsage || !strings.Contains(s.errs, words) {
			t.Errorf("%v: %+v", args, s)
		}
	}
}

func TestLogin_EndsOnCtrlC(t *testing.T) {
	t.Parallel()
	i := issues(t)
	config := file(t, fmt.Sprintf("current: prod\ncontexts:\n  prod: {url: %s, oidc: {issuer: %s, client_id: cli, "+
		"audience: punctual}}\n", "http://localhost:1", i.URL))
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, interrupt)
	var errs bytes.Buffer
	code := run(ctx, []string{"--config", config, "login"}, nil, io.Discard, &errs)
	if code != exitInterrupted || !strings.HasSuffix(errs.String(), "punctual: nobody has signed in\n") {
		t.Errorf("%d %s", code, &errs)
	}
}

func TestSigV4_SignsEachRequest(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	seen := 0
	url := takes(t, func(r *http.Request) {
		seen++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got := r.Header.Get("Authorization")
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || !strings.Contains(got, "/eu-central-1/execute-api/aws4_request") {
			t.Fatalf("%v %s", err, got)
		}
		repeated, err := http.NewRequestWithContext(t.Context(), r.Method, "http://"+r.Host+r.URL.String(),
			bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, names, _ := strings.Cut(got, "SignedHeaders=")
		names, _, _ = strings.Cut(names, ",")
		for name := range strings.SplitSeq(names, ";") {
			if name != "host" {
				repeated.Header.Set(name, r.Header.Get(name))
			}
		}
		sum := sha256.Sum256(body)
		by := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: "session"}
		err = v4.NewSigner().SignHTTP(t.Context(), by, repeated, hex.EncodeToString(sum[:]), "execute-api",
			"eu-central-1", at)
		if err != nil || repeated.Header.Get("Authorization") != got {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, repeated.Header.Get("Authorization"))
		}
	})
	config := file(t, "current: iam\ncontexts:\n  iam: {url: "+url+", sigv4: {}}\n"+
		"  both: {url: "+url+", sigv4: {}, token_command: echo x}\n"+
		"  none: {url: "+url+", sigv4: {profile: nobody}}\n")
	try := func(args ...string) said {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--config", config}, args...), nil, &out, &errs)
		return said{code, out.String(), errs.String()}
	}
	if s := try("ls", "--schedule", "a b"); s.code != exitDone || seen != 1 {
		t.Errorf("%+v, %d requests", s, seen)
	}
	if s := try("run", "echo", "-p", `{"text":"é"}`); s.code != exitDone || seen != 2 {
		t.Errorf("%+v, %d requests", s, seen)
	}
	if s := try("--context", "both", "ls"); s.code != exitUsage || !strings.Contains(s.errs, "more than one") {
		t.Errorf("%+v", s)
	}
	s := try("--context", "none", "ls")
	if s.code != exitForbidden || !strings.Contains(s.errs, "nobody") || seen != 2 {
		t.Errorf("%+v, %d requests", s, seen)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if s := try("ls"); s.code != exitForbidden || !strings.Contains(s.errs, "AWS credentials") || seen != 2 {
		t.Errorf("%+v, %d requests", s, seen)
	}
}
