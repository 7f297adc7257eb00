package openapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"punctual/functions/api"
	"punctual/integration/emulator/environment"
	"punctual/shared/store"
)

var update = flag.Bool("update", false, "write what the client is made of, and make it; make generate does")

// restFolder holds the generated part of the client.
const restFolder = "../../shared/client/rest"

func TestClient_IsMadeOfTheServedDocument(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	api.New(api.Deps{Store: &store.Store{}}).ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", http.NoBody))
	var document bytes.Buffer
	if err := json.Indent(&document, w.Body.Bytes(), "", " "); err != nil {
		t.Fatalf("the API's document: %d %v", w.Code, err)
	}
	document.WriteByte('\n')
	agree(t, "openapi.json", document.Bytes())

	if testing.Short() {
		environment.SkipOrFail(t, "the generator may have to be downloaded; nothing is with -short")
	}
	if said, err := run(t, "go", "run", goGenerator, "-version"); err != nil {
		environment.SkipOrFail(t, "oapi-codegen cannot be run: "+said)
	}
	dir := t.TempDir()
	for _, name := range []string{"openapi.json", "generate.yaml", "overlay.yaml"} {
		text, err := os.ReadFile(filepath.Join(restFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := run(t, "sh", "-c", "cd "+dir+" && go run "+goGenerator+" -config generate.yaml openapi.json")
	if err != nil || said != "" {
		t.Fatalf("generating the client: %v\n%s", err, said)
	}
	code, err := os.ReadFile(filepath.Join(dir, "rest.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "rest.gen.go", code)
}

// agree holds a file of the client to what it must be, or writes it with -update.
func agree(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(restFolder, name)
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
		t.Errorf("shared/client/rest/%s is not what the API serves now (%v); run: make generate", name, err)
	}
}
