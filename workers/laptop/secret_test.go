package laptop

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecrets_ComeFromAFileAndTheEnvironment(t *testing.T) {
	t.Parallel()
	want := map[string]string{"hook": "whsec_a=b", "api-token": "t t", "other": "e"}
	environ := []string{"HOME=/root", secretVariable + "other=e"}
	for _, text := range []string{
		`{"hook": "whsec_a=b", "api-token": "t t"}`,
		"# mine\n\nhook = whsec_a=b\nexport api-token='t t'\n",
	} {
		got, err := secrets(written(t, text), environ)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	if got, err := secrets("", environ); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	for text, words := range map[string]string{
		`{"a": "hidden", "b": 7}`:     "secret b is no string",
		`{"a": "hidden"`:              "no object of JSON",
		`{"a": "hidden", b}`:          "no object of JSON",
		"a=hidden\nhidden too\n":      "line 2: want NAME=value",
		"a b=hidden\n":                `secret "a b": want a name`,
		"a=\n":                        "secret a is empty",
		`{"a": ["hidden", "hidden"]}`: "secret a is no string",
	} {
		_, err := secrets(written(t, text), nil)
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
	if _, err := secrets("/nowhere", nil); err == nil {
		t.Error("a file that is not there has secrets")
	}
}

func TestServe_SignsAndSignsInByLocalSecrets(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	signed := make(chan error, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := client.ReadSigned(r, secret)
		if got := r.Header.Get("Authorization"); err == nil && got != "Bearer a token" {
			err = fmt.Errorf("the token is %d bytes long", len(got))
		}
		signed <- err
	}))
	t.Cleanup(hook.Close)
	o := Options{Secrets: written(t, "hook="+secret+"\napi=a token")}
	var said bytes.Buffer
	c := here(t, o)
	o.Greet(&said, "localhost:1")
	if !strings.Contains(said.String(), secretARN("hook")+"\n") || strings.Contains(said.String(), secret) {
		t.Error(said.String())
	}
	job := must[rest.JobView](t)(c.CreateJob(t.Context(), "", rest.JobRequest{Task: "http", Payload: map[string]any{
		"url": hook.URL, "body": 1, "sign_with": secretARN("hook"),
		"auth": map[string]string{"bearer": secretARN("api")}}}))
	if job = must[rest.JobView](t)(c.Wait(t.Context(), job.JobID)); string(job.Status) != "SUCCEEDED" {
		t.Fatalf("%s: %+v", job.Status, job.StatusReason)
	}
	if err := <-signed; err != nil {
		t.Error(err)
	}
}
