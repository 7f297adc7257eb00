package deploy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"punctual/integration/story"
	"punctual/shared/aws/table"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/store"
)

var indexes = line{"shared/docs/deploying.md", "make reindex "}

func TestSearch_FindsJobsOnTheDeployment(t *testing.T) {
	d := setup(t)
	d.explain(t, "api-write", "api-search", "changes", "bulk", "reindex", "status")
	d.work(t, "short")
	a := d.api(t, "soylent", everything...)
	const most = 3 * time.Minute
	tagged := a.Post(story.Object{"task": "echo", "tags": story.Object{"customer": "42"}})
	var dead []string
	for range 3 {
		dead = append(dead, a.Post(story.Object{"task": "echo", "payload": story.Object{"fail": 9},
			"retry": story.Object{"max_attempts": 1}}))
	}
	a.Await(tagged, "SUCCEEDED", most)
	for _, id := range dead {
		a.Await(id, "DEAD", most)
	}
	found := func(query string) []any {
		v := a.Want(http.StatusOK, "GET", query, nil)
		if at, _ := v["as_of"].(string); at == "" {
			t.Fatalf("%s is of no time: %v", query, v)
		}
		items, _ := v["items"].([]any)
		return items
	}
	const byTag = "/jobs?tag.customer=42&status=SUCCEEDED"
	await(t, "the job is found by its tag", func() bool { return len(found(byTag)) == 1 })

	var group any
	await(t, "the dead letters are one group", func() bool {
		groups := found("/dead-letters/groups")
		if len(groups) != 1 {
			return false
		}
		of, _ := groups[0].(story.Object)
		group = of["group"]
		return of["count"] == 3.0
	})
	v := a.Want(http.StatusAccepted, "POST", "/operations", story.Object{"action": "redrive",
		"filter": story.Object{"group": group}})
	operation, _ := v["operation_id"].(string)
	await(t, "the operation has redriven the group", func() bool {
		v = a.Want(http.StatusOK, "GET", "/operations/"+operation, nil)
		return v["status"] == "SUCCEEDED"
	})
	if v["matched"] != 3.0 || v["done"] != 3.0 {
		t.Errorf("the operation is %v", v)
	}

	await(t, "the jobs are counted", func() bool {
		series, _ := a.Want(http.StatusOK, "GET", "/stats?step=1m", nil)["series"].(story.Object)
		points, _ := series["dead"].([]any)
		sum := 0.0
		for _, n := range points {
			sum += n.(float64)
		}
		return sum >= 3
	})

	index := store.NewSearchTable(nil, table.New(d.aws.Config(), contract.Env{Prefix: prefix}.TableName))
	lost := search.Entry{Key: job.Key{Tenant: "soylent", ID: job.ID(tagged)}}
	if err := index.RemoveEntry(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if items := found(byTag); len(items) != 0 {
		t.Fatalf("without its entry the job is found: %v", items)
	}
	said, err := d.typed(t.Context(), indexes, d.functions())
	if err != nil || !strings.Contains(said, `"done":true`) {
		t.Fatalf("making the index anew: %v\n%s", err, said)
	}
	if items := found(byTag); len(items) != 1 {
		t.Errorf("the index is made anew, and by the tag %d are found:\n%s", len(items), said)
	}
}
