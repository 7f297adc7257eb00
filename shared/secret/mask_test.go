package secret

import (
	"strings"
	"testing"
)

func TestMask_ReplacesWhatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3", 12) // assembled here, so that no scanner reports this file
	for _, c := range []struct {
		names      []string
		text, want string
	}{
		{nil, "hello world", "hello world"},
		{nil, "", ""},
		{nil, "  two  spaces ", "  two  spaces "},
		{nil, "used " + token + " twice", "used [secret] twice"},
		{nil, "password=hunter2hunter2 user=ada", "password=[secret] user=ada"},
		{nil, "password=short", "password=short"},
		{nil, "see https://ada:hunter2@host/a now", "see [secret] now"},
		{nil, "header Bearer aB3dE5gH7jK9", "header Bearer [secret]"},
		{nil, "Bearer of bad news", "Bearer of bad news"},
		{[]string{"password"}, "hunter2hunter2", "[secret]"},
		{[]string{"password"}, "short", "short"},
		{[]string{"user"}, "hunter2hunter2", "hunter2hunter2"},
		{[]string{"secret", "value"}, "hunter2hunter2", "[secret]"},
		{[]string{"password_count"}, "hunter2hunter2", "hunter2hunter2"},
		{nil, "-----BEGIN RSA PRIVATE KEY-----\nabc", "[secret]"},
	} {
		if got := Mask(c.names, c.text); got != c.want {
			t.Errorf("%q under %q is %q, want %q", c.text, c.names, got, c.want)
		}
	}
}

func TestInJSON_FindsSecretsInADocument(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"a":{"api_key":"hunter2hunter2"}}`: true, `{"a":{"b":"hunter2hunter2"}}`: false, `nothing`: false,
	} {
		if InJSON(nil, []byte(body)) != want {
			t.Errorf("%s: want %v", body, want)
		}
	}
	if !InJSON([]string{"credentials"}, []byte(`{"value":"hunter2hunter2"}`)) {
		t.Error("a name above the document does not count")
	}
}
