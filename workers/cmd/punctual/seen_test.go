package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSeen_EscapesWhatCommandsATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é 漢 😀\t\x1b[1m\n":        "plain é 漢 😀\t\x1b[1m\n",
		"a\u009bb\u0080\u009f":          `a\u009bb\u0080\u009f`,
		"\u202eevil\u2066x\u2069\u200f": `\u202eevil\u2066x\u2069\u200f`,
		"raw \x9b byte":                 "raw \ufffd byte",
	} {
		for cut := range len(text) { // however it comes
			var out bytes.Buffer
			w := &seen{to: &out}
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if out.String() != want {
				t.Errorf("%q cut at %d is %q, want %q", text, cut, &out, want)
			}
		}
	}
}

// hostile is what a server may send to take over a terminal.
const hostile = "x\u001b]0;owned\u0007\u009b31m\u202e"

func TestCommand_PrintsNothingThatCommandsATerminal(t *testing.T) {
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":400,"code":"invalid_value","detail":"` + "x\\u001b]0;owned\\u0007\\u009b31m\\u202e" +
			`","errors":[{"pointer":"\u001b[2J","code":"x","detail":"\u009b","allowed":"\u202e"}]}`))
	}))
	t.Cleanup(refuses.Close)
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"job_id":"x","status":"DEAD","task":"x\u001b]0;owned\u0007\u009b31m\u202e",
			"status_reason":{"code":"c","message":"x\u001b]0;owned\u0007\u009b31m\u202e"}}`))
	}))
	t.Cleanup(answers.Close)
	for _, c := range [][]string{
		{"--url", refuses.URL, "get", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"--url", answers.URL, "get", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"--url", answers.URL, "-o", "json", "get", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"--url", answers.URL, "-o", "yaml", "get", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"get", hostile, "--" + hostile},
	} {
		s := typed(t.Context(), "", c...)
		if all := s.out + s.errs; strings.ContainsAny(all, "\x1b\a\u009b\u202e") || !strings.Contains(all, "x") {
			t.Errorf("%q prints %q", c, all)
		}
	}
}
