package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestConfig_ChoosesTheDeploymentAndItsToken(t *testing.T) {
	t.Parallel()
	server := func(seen *string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*seen += r.Header.Get("Authorization") + ";"
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"items":[],"next_cursor":null}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	var dev, prod, other string
	otherURL := server(&other)
	path := file(t, "current: dev\ncontexts:\n  dev: {url: "+server(&dev)+"}\n  prod:\n    url: "+server(&prod)+
		"\n    token_command: echo secret-token\n"+
		"  broken: {url: http://localhost:1, token_command: echo no >&2; exit 3}\n")
	try := func(args ...string) said {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"--config", path}, args...), nil, &out, &errs)
		return said{code, out.String(), errs.String()}
	}
	for _, c := range []struct {
		args             []string
		code             int
		words            string
		dev, prod, other string
	}{
		{[]string{"ls"}, exitDone, "", ";", "", ""},
		{[]string{"--context", "prod", "ls"}, exitDone, "", "", "Bearer secret-token;", ""},
		{[]string{"--context", "prod", "--token", "mine", "ls"}, exitDone, "", "", "Bearer mine;", ""},
		{[]string{"--url", otherURL, "ls"}, exitDone, "", "", "", ";"},
		{[]string{"--url", otherURL, "--context", "prod", "ls"}, exitUsage, "not given together", "", "", ""},
		{[]string{"--context", "test", "ls"}, exitUsage, "known: broken, dev, prod", "", "", ""},
		{[]string{"--context", "broken", "ls"}, exitRefused, "token_command: exit status 3: no", "", "", ""},
	} {
		dev, prod, other = "", "", ""
		s := try(c.args...)
		if s.code != c.code || !strings.Contains(s.errs, c.words) {
			t.Errorf("%v: %+v", c.args, s)
		}
		if dev != c.dev || prod != c.prod || other != c.other {
			t.Errorf("%v: dev %q, prod %q, other %q", c.args, dev, prod, other)
		}
	}
	path = file(t, "contexts:\n  dev: {uri: x}\n")
	if s := try("ls"); s.code != exitUsage || !strings.Contains(s.errs, "line 2") || !strings.Contains(s.errs, "uri") {
		t.Errorf("%+v", s)
	}
	path = file(t, "currant: dev\ncontexts:\n  dev: {url: http://localhost:1, oidc: {issuers: x}}\n")
	for _, words := range []string{
		`line 1, column 1: no key "currant" is known here; did you mean "current"?; allowed: contexts, current`,
		`no key "issuers" is known here; did you mean "issuer"?; allowed: audience, client_id, issuer, scopes`,
	} {
		if s := try("ls"); s.code != exitUsage || !strings.Contains(s.errs, words) {
			t.Errorf("no %q in %+v", words, s)
		}
	}
	path = file(t, "contexts: 5\n")
	if s := try("ls"); s.code != exitUsage || !strings.Contains(s.errs, "line 1") {
		t.Errorf("%+v", s)
	}
	path = file(t, "# nothing yet\n")
	if s := try("logout"); s.code != exitUsage || !strings.Contains(s.errs, "no context is chosen") {
		t.Errorf("%+v", s)
	}
	path = "/nowhere.yaml"
	if s := try("ls"); s.code != exitUsage || !strings.Contains(s.errs, "no such file") {
		t.Errorf("%+v", s)
	}
}
