package access

import (
	"context"
	"testing"
	"time"

	"punctual/functions/search"
	"punctual/shared/item"
	"punctual/shared/process"
	"punctual/shared/store"
)

// ofSearches makes the parts keep the index of jobs, find jobs by it, and make it anew.
func ofSearches(t *testing.T, w *bench) {
	a := w.api
	p := w.ports("reindex")
	rebuild := func(rows store.Scanner) search.Progress {
		base := process.Base{Shards: 1}
		done, err := (&search.Rebuild{Jobs: rows, Stage: search.New(search.Deps{Base: base,
			Store: store.New(p.Table, p.Blobs), Index: store.NewSearchTable(nil, p.Table)})}).Handle(t.Context(),
			search.Progress{})
		if err != nil || !done.Done {
			t.Errorf("it is made anew: %+v, %v", done, err)
		}
		return done
	}
	// One entry, row or label is read by another call than many are.
	a.Post(object{"task": "echo", "delay": "20h", "tags": object{"team": "c"}})
	time.Sleep(time.Minute)
	rebuild(p.Table.(store.Scanner))
	a.Want(200, "GET", "/jobs?tag.team=c", nil)
	one := object{"action": "run_now", "filter": object{"tags": object{"team": "c"}}}
	a.Want(202, "POST", "/operations", one, "Idempotency-Key", "one")
	one["dry_run"] = true
	a.Call("POST", "/operations", one)
	time.Sleep(time.Minute)
	for _, size := range sizes {
		a.Post(object{"task": "echo", "payload": payload(size), "tags": object{"team": "a"}})
		a.Post(object{"task": "echo", "delay": "20h", "payload": payload(size), "tags": object{"team": "b"}})
	}
	a.Want(202, "POST", "/runs", object{"dag": object{"nodes": object{"a": object{"task": "echo"}}}})
	for range 3 {
		a.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}})
	}
	a.Post(object{"task": "echo", "payload": object{"sleep": "5m"}, "tags": object{"team": "a"}})
	time.Sleep(2 * time.Minute)
	for query, least := range map[string]int{"": 8, "?status=RUNNING": 1, "?status=RUNNING&tag.team=a": 1,
		"?status=DEAD": 3, "?task=echo": 8, "?task=echo&pool=short": 8,
		"?tag.team=a": 4, "?status=QUEUED": 0, "?status=SCHEDULED": 3,
		"?priority=normal": 8, "?status=SUCCEEDED&order=oldest": 3} {
		if items, _ := a.Want(200, "GET", "/jobs"+query, nil)["items"].([]any); len(items) < least {
			t.Errorf("%q finds %d jobs; want %d", query, len(items), least)
		}
	}
	a.Want(200, "GET", "/dead-letters", nil)
	a.Want(200, "GET", "/dead-letters?task=echo", nil)
	a.Want(200, "GET", "/dead-letters?code=handler_failed", nil)
	groups, _ := a.Want(200, "GET", "/dead-letters/groups", nil)["items"].([]any)
	if len(groups) != 1 {
		t.Fatalf("the dead letters have the groups %v", groups)
	}
	filter := object{"group": groups[0].(object)["group"]}
	if v := a.Want(200, "POST", "/operations", object{"action": "redrive", "filter": filter,
		"dry_run": true}); v["matched"] != 3.0 {
		t.Errorf("a dry run: %v", v)
	}
	v := a.Want(202, "POST", "/operations", object{"action": "redrive", "filter": filter}, "Idempotency-Key", "k")
	ran := a.Want(202, "POST", "/operations", object{"action": "run_now",
		"filter": object{"tags": object{"team": "b"}}}, "Idempotency-Key", "l")
	time.Sleep(5 * time.Minute)
	for _, id := range []any{v["operation_id"], ran["operation_id"]} {
		if v := a.Want(200, "GET", "/operations/"+id.(string), nil); v["status"] != "SUCCEEDED" || v["done"] != 3.0 {
			t.Errorf("operation %v", v)
		}
	}
	items, _ := a.Want(200, "GET", "/jobs?tag.team=b", nil)["items"].([]any)
	for _, i := range items {
		a.Call("DELETE", "/jobs/"+i.(object)["job_id"].(string), nil)
	}
	a.Want(200, "POST", "/operations", object{"action": "purge", "filter": filter, "dry_run": true})
	gone := a.Post(object{"task": "echo", "payload": object{"fail": 9}, "retry": object{"max_attempts": 1}})
	time.Sleep(time.Minute)
	rows := deleting{p.Table.(store.Scanner), func() { a.Want(204, "DELETE", "/jobs/"+gone, nil) }}
	if done := rebuild(rows); done.Indexed < 8 {
		t.Errorf("%d jobs are indexed", done.Indexed)
	}
}

// deleting is a table from which a job is deleted after it was read.
type deleting struct {
	store.Scanner
	do func()
}

func (d deleting) Scan(ctx context.Context, table, cursor string, limit int) (item.Page, error) {
	page, err := d.Scanner.Scan(ctx, table, cursor, limit)
	if cursor == "" {
		d.do()
	}
	return page, err
}
