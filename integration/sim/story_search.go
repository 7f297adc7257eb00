package sim

import (
	"fmt"
	"reflect"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/search"
	"punctual/shared/store"
)

// Indexed are stories about the index of jobs. Whatever crashes between a row and its entry, in the end the index says
// what the rows say.
var Indexed = []Story{
	{Name: "jobs end, and are found as they are", Held: true, Indexed: true, Workers: 2, Play: func(w *Client) func() {
		tags := map[string]string{"team": "a"}
		ids := []job.ID{
			w.Post("good", object{"tags": tags}),
			w.Post("retried", object{"tags": tags, "payload": Work{Fail: 2}}),
			w.Post("dead", object{"tags": tags, "payload": Work{Permanent: true}}),
			w.Post("ahead", object{"tags": tags, "delay": "30m"}),
		}
		late := w.Post("cancelled", object{"delay": "20s"})
		w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(late)+"/cancel", nil)
		return func() { w.indexIsRight(tags, ids...) }
	}},
	{Name: "a job dies and is redriven, another is changed", Held: true, Indexed: true, Play: func(w *Client) func() {
		tags := map[string]string{"team": "a"}
		dead := w.Post("dead", object{"payload": Work{Permanent: true}})
		changed := w.Post("changed", object{"tags": tags, "delay": "20m"})
		time.Sleep(20 * time.Second)
		w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(dead)+"/redrive", nil)
		w.Want([]int{200, 409}, "PATCH", "/jobs/"+string(changed), object{"priority": "high"})
		return func() { w.indexIsRight(tags, changed) }
	}},
}

// indexedWithin is how long the index may take to follow in a storm.
const indexedWithin = 30 * time.Minute

// indexIsRight verifies that the index of a tenant's jobs is that of its rows, and that those with the tags are found
// by them.
func (w *Client) indexIsRight(tags map[string]string, tagged ...job.ID) {
	why := ""
	for from := time.Now(); time.Since(from) < indexedWithin; time.Sleep(10 * time.Second) {
		if why = w.indexDiffers(tags, tagged); why == "" {
			return
		}
	}
	w.violation("the index is not that of the rows: %s", why)
}

func (w *Client) indexDiffers(tags map[string]string, tagged []job.ID) string {
	index := store.NewSearchTable(nil, w.ledger)
	find := func(q search.Query) map[job.ID]search.Entry {
		q.Limit = contract.MaxBatchJobs
		page, err := index.Search(w.over, w.tenant, q)
		if err != nil || page.Next != "" {
			w.violation("searching: %d found, %v", len(page.Entries), err)
		}
		found := map[job.ID]search.Entry{}
		for _, e := range page.Entries {
			found[e.ID] = e
		}
		return found
	}
	all := find(search.Query{})
	deaths := 0
	for _, r := range w.rows() {
		if !search.Listed(r) {
			continue
		}
		is := all[r.ID]
		want := search.EntryOf(r, "", "")
		want.Tags = is.Tags
		if !reflect.DeepEqual(is, want) {
			return fmt.Sprintf("%+v is indexed as %+v", want, is)
		}
		delete(all, r.ID)
		if !r.DeadAt.IsZero() {
			deaths++
		}
	}
	if len(all) > 0 {
		return fmt.Sprintf("there are entries of no rows: %+v", all)
	}
	byTags := find(search.Query{Filter: search.Filter{Tags: tags}})
	for _, id := range tagged {
		if _, is := byTags[id]; !is {
			return fmt.Sprintf("by its tags %s is not found", short(id))
		}
	}
	if len(byTags) != len(tagged) {
		return fmt.Sprintf("by their tags %d jobs are found, want %d", len(byTags), len(tagged))
	}
	causes, err := index.DeadGroups(w.over, w.tenant, time.Time{}, time.Now())
	counted := 0
	for _, g := range causes.Groups {
		counted += g.Count
	}
	if lists := find(search.Query{Order: search.LastDead}); err != nil || counted != deaths || len(lists) != deaths {
		return fmt.Sprintf("%d deaths are counted and %d are listed, want %d: %v", counted, len(lists), deaths, err)
	}
	return ""
}
