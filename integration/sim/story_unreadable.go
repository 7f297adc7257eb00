package sim

import (
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/job"
)

// unreadables are about items that are damaged by an operator or by an old program and repaired later.
var unreadables = []Story{
	{Name: "a pause of one task cannot be read", Alone: true, Held: true, Play: func(w *Client) func() {
		pause := item.Item{"body": `{"scope":"task:nobodys","until":"tomorrow"}`}
		remove := w.Plant(job.PauseRef(job.Everyone, "task:nobodys"), pause)
		return w.neighbours(remove, 20*time.Minute)
	}},
	{Name: "a tenant's pause of everything cannot be read", Alone: true, Held: true, Play: func(w *Client) func() {
		other := w.As(tenants[1])
		other.Define()
		remove := w.Plant(job.PauseRef(other.tenant, "all"), item.Item{"body": `{"scope":"all","until":"tomorrow"}`})
		held := other.many("held", 3, 10*time.Second, time.Minute, Work{})
		other.Put("s", every("10s", 5*time.Minute), object{"catch_up": object{"policy": "all"}})
		end := w.neighbours(remove, 20*time.Minute)
		return func() {
			end()
			for _, id := range held {
				other.Is(id, 1, job.Succeeded)
			}
			other.fates(other.key("s"))
		}
	}},
	{Name: "a job cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		id := w.Post("k", object{"delay": "3m"})
		mend := w.Spoil(job.Key{Tenant: w.tenant, ID: id}.Ref(), "due_at", "at three")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Is(id, 1, job.Succeeded)
		}
	}},
	{Name: "a job cannot be read until twenty minutes after it was due",
		Alone: true, Held: true, Play: func(w *Client) func() {
			id := w.Post("k", object{"delay": "40m"})
			mend := w.Spoil(job.Key{Tenant: w.tenant, ID: id}.Ref(), "due_at", "at three")
			end := w.neighbours(mend, time.Hour)
			return func() {
				end()
				w.Is(id, 1, job.Succeeded)
			}
		}},
	{Name: "a claim cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.rerun = true // its owner finds a new owner
		id := w.Post("k", object{"payload": Work{Sleep: "2m"}, "timeout": "5m"})
		time.Sleep(15 * time.Second)
		k := job.Key{Tenant: w.tenant, ID: id}
		w.ledger.distrust(k.Ref()) // the job may be quarantined for its claim
		mend := w.Spoil(k.ClaimRef(), "outcome", "well")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Is(id, 1, job.Succeeded)
		}
	}},
	{Name: "a schedule cannot be read for twenty minutes", Alone: true, Held: true, Play: func(w *Client) func() {
		w.Put("bad", every("1m", 50*time.Minute), object{"catch_up": object{"policy": "all"}})
		mend := w.Spoil(w.key("bad").Ref(), "body", "a schedule")
		end := w.neighbours(mend, 20*time.Minute)
		return func() {
			end()
			w.Came("bad", nil)
		}
	}},
	{Name: "an exclusion cannot be read for twenty minutes",
		Alone: true, Held: true, Play: func(w *Client) func() {
			w.Want([]int{200, 201}, "PUT", "/exclusions/days", object{"yearly": []string{"12-25"}})
			bad := every("1m", 50*time.Minute)
			bad["exclude"] = []string{"days"}
			w.Put("bad", bad, object{"catch_up": object{"policy": "all"}})
			mend := w.Spoil(item.Ref{Table: contract.Tasks, PK: "exclusion#" + string(w.tenant), SK: "days"}, "body",
				"days")
			end := w.neighbours(mend, 20*time.Minute)
			return func() {
				end()
				w.Came("bad", map[string]int{ran: 50})
			}
		}},
	{Name: "who holds a slot cannot be read for three minutes",
		Redo: 15 * time.Minute, Alone: true, Held: true, Play: func(w *Client) func() {
			// The holder is a job that the story wrote.
			k := job.Key{Tenant: w.tenant, ID: w.Post("k", object{"delay": "45m"})}
			mend := w.Spoil(k.Ref(), "due_at", "at three")
			w.Plant(w.key("bad").SlotRef(), item.Item{"holder": string(k.ID)})
			w.Put("bad", every("10s", time.Minute), object{"overlap": "skip"})
			long := w.Post("long", object{"payload": Work{Sleep: "15m"}, "timeout": "30m"})
			end := w.neighbours(func() {
				mend()
				w.Want([]int{200, 409}, "POST", "/jobs/"+string(k.ID)+"/run-now", nil)
			}, 3*time.Minute)
			return func() {
				end()
				w.Is(long, 1, job.Succeeded)
				w.Came("bad", nil)
			}
		}},
}

// neighbours runs other work while something cannot be read, and verifies that it is not affected.
// mend is called after that time, and within an hour everything has settled.
func (w *Client) neighbours(mend func(), after time.Duration) func() {
	ids := w.many("neighbour", 12, 20*time.Second, after/12, Work{})
	w.Put("neighbour", every("1m", after), nil)
	time.Sleep(after)
	mend()
	return func() {
		for _, id := range ids {
			w.Is(id, 1, job.Succeeded)
		}
		w.Started(time.Time{}, 2*time.Second, ids...)
		for _, f := range w.fates(w.key("neighbour")) {
			runs := w.runs(f.row.Key)
			if !w.o.Disturbed && (len(runs) == 0 || runs[0].from.Sub(f.DueAt) > 2*time.Second) {
				w.violation("the neighbour's %s ran %d times, or late", clockTime(f.NominalAt), len(runs))
			}
		}
	}
}
