package openapi_test

import (
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

var update = flag.Bool("update", false, "make the types of the client; make generate does")

// restFolder holds the generated part of the client.
const restFolder = "../../shared/client/rest"

func TestClient_IsMadeOfTheServedDocument(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	api.New(api.Deps{Store: &store.Store{}}).ServeHTTP(w,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("the document of the API: %d %s", w.Code, w.Body)
	}
	if testing.Short() {
		environment.SkipOrFail(t, "the generator may have to be downloaded; nothing is with -short")
	}
	if said, err := run(t, "go", "run", goGenerator, "-version"); err != nil {
		environment.SkipOrFail(t, "oapi-codegen cannot be run: "+said)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "openapi.json"), w.Body.String())
	for _, name := range []string{"generate.yaml", "overlay.yaml"} {
		write(t, filepath.Join(dir, name), read(t, filepath.Join(restFolder, name)))
	}
	said, err := run(t, "sh", "-c", "cd "+dir+" && go run "+goGenerator+" -config generate.yaml openapi.json")
	if err != nil || said != "" {
		t.Fatalf("generating the client: %v\n%s", err, said)
	}
	want, kept := read(t, filepath.Join(dir, "rest.gen.go")), filepath.Join(restFolder, "rest.gen.go")
	if *update {
		if err := os.WriteFile(kept, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(kept); err != nil || string(have) != want {
		t.Errorf("shared/client/rest/rest.gen.go is not what the API serves now (%v); run: make generate", err)
	}
}
