package api_test

import (
	"context"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

//proof:of F03
func TestAPI_RepairsAnUnreadableItemByAPut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	spoil := func(ref item.Ref) {
		t.Helper()
		if err := b.Store.Put(context.Background(),
			item.Write{Ref: ref, Name: "test.spoil", Set: map[string]any{"body": "{"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		list, name, body string
		ref              item.Ref
		listed           int // how many the list shows in addition to one that cannot be read
	}{
		{"/v1/pauses", "task:bad", `{}`, job.PauseRef("acme", "task:bad"), 2}, // it still holds what its key names
		{"/v1/tasks", "bad", `{"executor":"go"}`, job.TaskRef("acme", "bad"), 1 + len(job.BuiltInTasks())},
		{"/v1/exclusions", "bad", `{"weekly":["sun"]}`,
			item.Ref{Table: contract.Tasks, PK: "exclusion#acme", SK: "bad"}, 1},
	} {
		good := strings.Replace(c.name, "bad", "good", 1)
		b.want(t, 201, "PUT", c.list+"/"+good, c.body)
		b.want(t, 201, "PUT", c.list+"/"+c.name, c.body)
		spoil(c.ref)
		if got := b.want(t, 200, "GET", c.list, "").items(); len(got) != c.listed {
			t.Errorf("%s lists %v", c.list, got)
		}
		b.want(t, 200, "PUT", c.list+"/"+c.name, c.body)
		if got := b.want(t, 200, "GET", c.list, ""); len(got.items()) < 2 ||
			strings.Contains(got.text, "cannot be read") {
			t.Errorf("mended, %s lists %s", c.list, got.text)
		}
	}
}
