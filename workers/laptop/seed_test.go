package laptop

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"punctual/shared/client/rest"
)

func TestSeed_PutsTheExamplesAndChangesNothingWhenDoneAgain(t *testing.T) {
	t.Parallel()
	var url string
	c := hereAt(t, Options{}, &url)
	var said strings.Builder
	for range 2 {
		if err := Seed(t.Context(), url, &said); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), url+"/v1/dags/etl\n"); n != 2 {
		t.Errorf("it says %s", &said)
	}
	dag := must[rest.DagView](t)(c.Dag(t.Context(), "etl"))
	morning := must[rest.ScheduleView](t)(c.Schedule(t.Context(), "morning"))
	if dag.Version != 1 || morning.Version != 1 {
		t.Errorf("versions %d and %d", dag.Version, morning.Version)
	}
	run := must[rest.RunView](t)(c.RunDag(t.Context(), "", "etl", rest.DagRunRequest{}))
	if run = must[rest.RunView](t)(c.WaitRun(t.Context(), run.RunID)); string(run.Status) != "FAILED" {
		t.Errorf("the run is %s: dags.md repairs it", run.Status)
	}
	if err := Seed(t.Context(), "http://localhost:1", &said); err == nil {
		t.Error("nobody is there, and it is seeded")
	}
}

func TestSeed_HasTheExamplesOfTheDocuments(t *testing.T) {
	t.Parallel()
	var text []byte
	for _, page := range []string{"../../README.md", "../../shared/docs/dags.md"} {
		all, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, all...)
	}
	compact := func(text []byte) string {
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return b.String()
	}
	shown := map[string]bool{}
	put := regexp.MustCompile(`(?s)-X PUT --json '(.*?)' localhost:8080/v1/(\w+)/(\w+)`)
	for _, m := range put.FindAllSubmatch(text, -1) {
		shown["seed/"+string(m[2])+"."+string(m[3])+".json "+compact(m[1])] = true
	}
	files, err := fs.Glob(seeds, "seed/*")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		body, err := seeds.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !shown[file+" "+compact(body)] {
			t.Errorf("%s is not as in the documents", file)
		}
	}
}
