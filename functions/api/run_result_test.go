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
		items     int
		end       func(item int) job.Outcome
		status    string
		result    string // "": none
		partial   string
		truncated bool
	}{
		"as the list of its items' results": {2, func(i int) job.Outcome {
			return resultOf([]string{`{"n":1.50}`, long}[i])
		}, "SUCCEEDED", `[{"n":1.50},` + long + `]`, "", false},
		"with null for an item without a result": {2, func(i int) job.Outcome {
			return []job.Outcome{success, resultOf(`1`)}[i]
		}, "SUCCEEDED", `[null,1]`, "", false},
		"with null for an item that failed": {2, func(i int) job.Outcome {
			return []job.Outcome{resultOf(`1`), failed}[i]
		}, "DEAD", `[1,null]`, "", false},
		"up to the size of any result": {29, func(int) job.Outcome {
			return resultOf(long)
		}, "SUCCEEDED", `[` + list(29, func(int) string { return long }) + `]`, "", false},
		"by saying that a larger list is in its items": {30, func(int) job.Outcome {
			return resultOf(long)
		}, "SUCCEEDED", "null", "", true},
		"never with a preview for a value": {2, func(i int) job.Outcome {
			o := resultOf(`{"truncated":true,"preview":"x"}`)
			o.Partial = []job.Partial{job.Whole, job.PartialSize}[i]
			return o
		}, "SUCCEEDED", "", "result_too_large", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			path := b.mappedRun(t, c.items, c.end)
			r := b.want(t, 200, "GET", path, "")
			partial, truncated := r.str("result_partial"), r.body["truncated"] == true
			if r.str("status") != c.status || partial != c.partial || truncated != c.truncated {
				t.Errorf("the node is %s, partial %q, truncated %v", r.str("status"), partial, truncated)
			}
			if _, shown := r.body["result"]; shown != (c.result != "") ||
				shown && !strings.Contains(r.text, `"result":`+c.result+`,`) {
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

func TestGetRunNode_ShowsTheResultOfEachItemInPagesThatFitOneAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const items, each = 12, 100_000
	long := strings.Repeat("x", each)
	path := b.mappedRun(t, items, func(i int) job.Outcome { return resultOf(fmt.Sprintf(`"%d%s"`, i, long)) })
	seen, pages, query := 0, 0, "?limit=100"
	for more := true; more; pages++ {
		r := b.want(t, 200, "GET", path+query, "")
		if len(r.text) > 1_000_000 {
			t.Errorf("an answer has %d bytes", len(r.text))
		}
		page := r.body["items"].(map[string]any)
		for _, item := range page["items"].([]any) {
			if got := item.(map[string]any)["result"]; got != fmt.Sprint(seen)+long {
				t.Errorf("the result of item %d is %.20v", seen, got)
			}
			seen++
		}
		var cursor string
		cursor, more = page["next_cursor"].(string)
		query = "?limit=100&cursor=" + cursor
	}
	if seen != items || pages < 2 {
		t.Errorf("%d pages have %d items", pages, seen)
	}
}

func TestMaxFailed_LetsSoManyItemsFail(t *testing.T) {
	t.Parallel()
	failed := job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x", Message: "y"}}
	for maxFailed, want := range map[string]string{`1`: "SUCCEEDED", `"50%"`: "SUCCEEDED", `0`: "DEAD", `"49%"`: "DEAD"} {
		t.Run(maxFailed+" of two", func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.want(t, 202, "POST", "/v1/runs", `{"dag":{"nodes":{
				"m":{"task":"echo","for_each":"${[1,2]}","max_failed":`+maxFailed+`},
				"z":{"task":"echo","depends_on":["m"],"payload":"${nodes.m.result}"}}}}`)
			k := run.Key{Tenant: b.who.Tenant, ID: job.ID(r.str("run_id"))}
			b.settled(t, string(k.Job("m", 1, 1).ID), failed)
			b.settled(t, string(k.Job("m", 1, 2).ID), resultOf(`7`))
			m := b.want(t, 200, "GET", "/v1/runs/"+string(k.ID)+"/nodes/m", "")
			if m.str("status") != want || !strings.Contains(m.text, `"result":[null,7]`) {
				t.Errorf("the node is %s", m.text)
			}
			all := b.want(t, 200, "GET", "/v1/runs/"+string(k.ID), "")
			counts, _ := all.body["nodes"].(map[string]any)["m"].(map[string]any)["items"].(map[string]any)
			if counts["failed"] != 1.0 || counts["succeeded"] != 1.0 {
				t.Errorf("the items are %v", counts)
			}
			if z := b.want(t, 200, "GET", "/v1/runs/"+string(k.ID)+"/nodes/z", ""); want == "SUCCEEDED" &&
				!strings.Contains(z.text, `"payload":[null,7]`) {
				t.Errorf("the child sees %s", z.text)
			}
		})
	}
}

func TestMaxFailed_IsANumberOrAShareInWholePercent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := func(maxFailed string) string {
		return `{"nodes":{"m":{"task":"echo","for_each":"${[1,2]}","max_failed":` + maxFailed + `}}}`
	}
	for given, shown := range map[string]string{
		`5`: `"max_failed":5}`, `"10%"`: `"max_failed":"10%"}`, `"100%"`: `"max_failed":"100%"}`, `1000`: `"max_failed":1000}`,
	} {
		b.do(t, "PUT", "/v1/dags/d", body(given))
		if r := b.want(t, 200, "GET", "/v1/dags/d", ""); !strings.Contains(r.text, shown) {
			t.Errorf("%s is shown as %s", given, r.text)
		}
	}
	for _, none := range []string{`0`, `"0%"`} {
		b.do(t, "PUT", "/v1/dags/d", body(none))
		if r := b.want(t, 200, "GET", "/v1/dags/d", ""); strings.Contains(r.text, "max_failed") {
			t.Errorf("%s is shown as %s", none, r.text)
		}
	}
	for given, code := range map[string]string{
		`-1`: "out_of_range", `1001`: "out_of_range", `"101%"`: "out_of_range", `1.5`: "invalid_value", `"5"`: "invalid_value",
		`"1.5%"`: "invalid_value", `"-1%"`: "invalid_value", `"05%"`: "invalid_value", `"%"`: "invalid_value",
		`""`: "invalid_value", `null`: "invalid_value", `true`: "invalid_value", `{}`: "invalid_value", `" 5%"`: "invalid_value",
	} {
		r := b.want(t, 400, "PUT", "/v1/dags/d", body(given))
		wrong := r.body["errors"].([]any)[0].(map[string]any)
		if wrong["pointer"] != "/nodes/m/max_failed" || wrong["code"] != code {
			t.Errorf("%s is %v, want %s", given, wrong, code)
		}
	}
}
