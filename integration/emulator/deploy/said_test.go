package deploy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// said returns the last lines of a function's log group.
func (d *deployment) said(t testing.TB, function string) string {
	t.Helper()
	query := `{"logGroupName":"/punctual/` + prefix + "-" + function + `"}`
	r, err := http.NewRequest(http.MethodPost, d.aws.URL, strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "Logs_20140328.FilterLogEvents")
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	if err := d.sign(t, r, query, "logs"); err != nil {
		return err.Error()
	}
	resp, err := d.aws.Client(10 * time.Second).Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	var answer struct {
		Events []struct{ Message string }
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Events) == 0 {
		return string(body)
	}
	var lines strings.Builder
	for _, e := range answer.Events[max(0, len(answer.Events)-20):] {
		if !strings.Contains(e.Message, `"_aws"`) { // metrics
			lines.WriteString(strings.TrimSpace(e.Message) + "\n")
		}
	}
	return lines.String()
}

// explain logs the lines of functions if the test has failed.
func (d *deployment) explain(t *testing.T, functions ...string) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, f := range functions {
			t.Logf("%s said:\n%s", f, d.said(t, f))
		}
	})
}
