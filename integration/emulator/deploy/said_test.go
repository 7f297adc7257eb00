package deploy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
)

// logs asks CloudWatch Logs.
func (d *deployment) logs(t testing.TB, operation, query string, answer any) error {
	t.Helper()
	return d.ask(t, "logs", "Logs_20140328."+operation, query, answer)
}

// ask asks a service of which nothing else here needs the SDK.
func (d *deployment) ask(t testing.TB, service, operation, query string, answer any) error {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, d.aws.URL, strings.NewReader(query))
	if err != nil {
		return err
	}
	r.Header.Set("X-Amz-Target", operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	if err := d.sign(t, r, query, service); err != nil {
		return err
	}
	resp, err := d.aws.Client(10 * time.Second).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", operation, resp.Status, body)
	}
	return json.Unmarshal(body, answer)
}

// lines returns all that was written to a log group.
func (d *deployment) lines(t testing.TB, group string) ([]string, error) {
	t.Helper()
	var all []string
	for next := ""; ; {
		query := map[string]any{"logGroupName": group}
		if next != "" {
			query["nextToken"] = next
		}
		text, err := json.Marshal(query)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Events    []struct{ Message string }
			NextToken string
		}
		if err := d.logs(t, "FilterLogEvents", string(text), &answer); err != nil {
			return nil, err
		}
		for _, e := range answer.Events {
			all = append(all, e.Message)
		}
		if next = answer.NextToken; next == "" {
			return all, nil
		}
	}
}

// said returns the last lines of a function's log group.
func (d *deployment) said(t testing.TB, function string) string {
	t.Helper()
	all, err := d.lines(t, "/punctual/"+prefix+"-"+function)
	if err != nil {
		return err.Error()
	}
	var lines strings.Builder
	for _, line := range all[max(0, len(all)-20):] {
		if !strings.Contains(line, `"_aws"`) { // metrics
			lines.WriteString(strings.TrimSpace(line) + "\n")
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

// canary looks like nothing that is kept back by its form.
const canary = "canary-Zm9vYmFy-7391"

// functionNames are the calls that take a body, by the deployed document: those of the collections, and of a thing
// named x.
func functionNames(t *testing.T, a *story.API) (all []string) {
	t.Helper()
	paths, _ := a.Want(http.StatusOK, "GET", "/openapi.json", nil)["paths"].(story.Object)
	for path, calls := range paths {
		for method, call := range calls.(story.Object) {
			if call, _ := call.(story.Object); call["requestBody"] != nil {
				all = append(all, strings.ToUpper(method)+" "+
					placeholder.ReplaceAllString(strings.TrimPrefix(path, "/v1"), "x"))
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d calls take a body: %v", len(all), all)
	}
	return all
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// The canary is sent through doors that take what is a tenant's own, well formed and not; the runs
// before have filled the logs.
func TestLogs_HoldNoBodyNoPayloadAndNoToken(t *testing.T) {
	d := setup(t)
	log := d.work(t, "short")
	a := d.api(t, "hooli", everything...)
	const most = 3 * time.Minute
	token := ""
	send := a.Send
	a.Send = func(r *http.Request) (*http.Response, error) {
		resp, err := send(r)
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		return resp, err
	}
	a.Await(a.Post(story.Object{"task": "echo", "payload": story.Object{"card": canary}}), "SUCCEEDED", most)
	a.Await(a.Post(story.Object{"task": "echo", "payload": story.Object{"card": canary}, "delay": "8s",
		"metadata": story.Object{"ticket": canary}}), "SUCCEEDED", most)
	dead := a.Post(story.Object{"task": "echo", "payload": story.Object{"fail": 9, "card": canary},
		"retry": story.Object{"max_attempts": 1}})
	a.Await(dead, "DEAD", most)
	a.Call("POST", "/jobs/"+dead+"/redrive", story.Object{"payload": canary})
	a.Call("POST", "/jobs", story.Object{"task": "http", // refused: the address is this machine's
		"payload": story.Object{"url": "http://127.0.0.1:1/" + canary, "body": canary}})
	for _, body := range []any{canary, []string{canary}, story.Object{canary: 1}, story.Object{"task": canary},
		story.Object{"task": "echo", "delay": canary}, story.Object{"jobs": []any{story.Object{"payload": canary}}},
		story.Object{"nodes": []any{story.Object{"name": "a", "task": "echo", "payload": canary}}}} {
		for _, function := range functionNames(t, a) {
			method, path, _ := strings.Cut(function, " ")
			a.Call(method, path, body, "Idempotency-Key", canary, "Cookie", canary)
		}
	}
	forged := d.api(t, "")
	for _, bearer := range []string{canary, canary + "." + canary + "." + canary} {
		forged.Call("GET", "/jobs", nil, "Authorization", "Bearer "+bearer)
	}
	time.Sleep(5 * time.Second) // what the last calls set off

	var groups struct {
		LogGroups []struct{ LogGroupName string }
	}
	if err := d.logs(t, "DescribeLogGroups", `{"limit":50}`, &groups); err != nil {
		t.Fatal(err)
	}
	signature := token[strings.LastIndex(token, ".")+1:]
	if len(signature) < 20 {
		t.Fatalf("the token has the signature %q", signature)
	}
	kept := []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), signature}
	inspect := func(where string, lines []string) {
		for _, line := range lines {
			for _, secret := range kept {
				if strings.Contains(line, secret) {
					t.Errorf("%s holds: %.600s", where, line)
				}
			}
		}
	}
	wrote := map[string]int{}
	for _, g := range groups.LogGroups {
		lines, err := d.lines(t, g.LogGroupName)
		if err != nil {
			t.Fatal(err)
		}
		inspect(g.LogGroupName, lines)
		wrote[g.LogGroupName] = len(lines)
	}
	for _, f := range []string{"api-write", "stream", "status", "authorizer"} {
		if wrote["/punctual/"+prefix+"-"+f] == 0 {
			t.Errorf("%s wrote no line: the test reads the wrong logs, of %v", f, wrote)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil || len(text) == 0 {
		t.Fatalf("the worker wrote %d bytes, %v", len(text), err)
	}
	inspect("the worker's log", strings.Split(string(text), "\n"))
	t.Logf("lines: %v", wrote)
}
