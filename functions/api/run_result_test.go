package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"punctual/shared/job"
	"punctual/shared/run"
)

// mappedRun runs a node m of n items, ends each item with the outcome that end gives, and returns the path of m.
func (b *bench) mappedRun(t *testing.T, n int, end func(item int) job.Outcome) string {
	t.Helper()
	r := b.want(t, 202, "POST", "/v1/runs", fmt.Sprintf(
		`{"dag":{"nodes":{"m":{"task":"echo","for_each":"${[%s]}"}}}}`, list(n, func(i int) string {
			return fmt.Sprint(i)
		})))
	k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
	for i := range n {
		b.settled(t, string(k.Job("m", 1, int64(i)+1).ID), end(i))
	}
	return "/v1/runs/" + r.str("run_id") + "/nodes/m"
}

// resultOf is an outcome with a result.
func resultOf(result string) job.Outcome {
	return job.Outcome{Kind: job.OutcomeSucceeded, Result: json.RawMessage(result)}
}

func TestGetRunNode_ShowsTheResultOfAMappedNode(t *testing.T) {
	t.Parallel()
	failed := job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x", Message: "y"}}
	long := `"` + strings.Repeat("x", 9_000) + `"` // more than a row holds
	for name, c := range map[string]struct {
		items             int
		end               func(item int) job.Outcome
		status            string
		result            string // "": none
		partial, resultIn string
	}{
		"as the list of its items' results": {2, func(i int) job.Outcome {
			return resultOf([]string{`{"n":1.50}`, long}[i])
		}, "SUCCEEDED", `[{"n":1.50},` + long + `]`, "", ""},
		"with null for an item without a result": {2, func(i int) job.Outcome {
			return []job.Outcome{success, resultOf(`1`)}[i]
		}, "SUCCEEDED", `[null,1]`, "", ""},
		"with null for an item that failed": {2, func(i int) job.Outcome {
			return []job.Outcome{resultOf(`1`), failed}[i]
		}, "DEAD", `[1,null]`, "", ""},
		"up to the size of any result": {29, func(int) job.Outcome {
			return resultOf(long)
		}, "SUCCEEDED", `[` + list(29, func(int) string { return long }) + `]`, "", ""},
		"by saying that a larger list is in its items": {30, func(int) job.Outcome {
			return resultOf(long)
		}, "SUCCEEDED", "", "", "items"},
		"never with a preview for a value": {2, func(i int) job.Outcome {
			o := resultOf(`{"truncated":true,"preview":"x"}`)
			o.Partial = []job.Partial{job.Whole, job.PartialSize}[i]
			return o
		}, "SUCCEEDED", "", "result_too_large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			path := b.mappedRun(t, c.items, c.end)
			r := b.want(t, 200, "GET", path, "")
			partial, in := r.str("result_partial"), r.str("result_in")
			if r.str("status") != c.status || partial != c.partial || in != c.resultIn {
				t.Errorf("the node is %s, partial %q, in %q", r.str("status"), partial, in)
			}
			if _, shown := r.body["result"]; shown != (c.result != "") ||
				shown && !strings.Contains(r.text, `"result":`+c.result+`,"items":`) {
				t.Errorf("the node is %.400s", r.text)
			}
		})
	}
}

func TestGetRunNode_ShowsNoResultOfAMappedNodeBeforeItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{"m":{"task":"echo","for_each":"${[1,2]}"}}}}`)
	k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
	b.settled(t, string(k.Job("m", 1, 1).ID), resultOf(`1`))
	if m := b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id")+"/nodes/m", ""); m.body["result"] != nil {
		t.Errorf("the node is %s", m.text)
	}
}

func TestGetRunNode_ShowsTheResultOfAMappedNodeWithItsFirstItemsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.mappedRun(t, 3, func(int) job.Outcome { return resultOf(`1`) }) + "?limit=2"
	first := b.want(t, 200, "GET", path, "")
	cursor, _ := first.body["items"].(map[string]any)["next_cursor"].(string)
	if !strings.Contains(first.text, `"result":[1,1,1]`) || cursor == "" {
		t.Errorf("first %s", first.text)
	}
	if next := b.want(t, 200, "GET", path+"&cursor="+cursor, ""); next.body["result"] != nil {
		t.Errorf("next %s", next.text)
	}
}

func TestGetRunNode_ShowsAnEmptyListAsTheResultOverAnEmptyList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/runs",
		`{"dag":{"nodes":{"m":{"task":"echo","for_each":"${[]}"},"s":{"task":"echo","when":"false"}}}}`)
	for name, want := range map[string]bool{"m": true, "s": false} {
		n := b.want(t, 200, "GET", "/v1/runs/"+r.str("run_id")+"/nodes/"+name, "")
		if n.str("status") != "SKIPPED" || strings.Contains(n.text, `"result":[]`) != want {
			t.Errorf("%s is %s", name, n.text)
		}
	}
}
