package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/schedule"
	"punctual/shared/tenant"
)

// What lasts for a while, other than the faults of a plan, which hit single calls: a store that is
// out of reach, a queue that refuses what it is sent, an item that nobody can read, a clock that
// is set.

// Trouble fails calls of the table for as long as it lasts; nil lets a call be.
type Trouble func(stage string, of item.Ref) error

// Hurt has the table fail so until the returned function is called.
func (w *World) Hurt(how Trouble) (heal func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hurts++
	n := w.hurts
	w.troubles[n] = how
	w.noteLocked(nil, "the table is hurt")
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.troubles, n)
		w.noteLocked(nil, "the table is healed")
	}
}

// hurt is how a call of the table about these items fails now, nil if it does not.
func (w *World) hurt(p *process, refs ...item.Ref) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, how := range w.troubles {
		for _, r := range refs {
			if err := how(p.stage, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// outage is a table that does not answer at all.
func outage(string, item.Ref) error { return fault.New(fault.Unavailable, nil, "the table is away") }

// throttled is a table that refuses whatever belongs to a tenant.
func throttled(t tenant.ID) Trouble {
	return func(_ string, r item.Ref) error {
		for _, prefix := range []string{string(t), "blob#" + string(t), "slot#" + string(t), "pause#" + string(t)} {
			if r.PK == prefix || strings.HasPrefix(r.PK, prefix+"#") || strings.HasPrefix(r.PK, prefix+"/") {
				return fault.New(fault.Throttled, nil, "a hot partition of %s", t)
			}
		}
		return nil
	}
}

// conflicting is a claim that somebody else's transaction holds all the time.
func conflicting(k job.Key) Trouble {
	return func(_ string, r item.Ref) error {
		if r.Table == contract.Claims && strings.HasSuffix(r.PK, "#"+string(k.ID)) {
			return fault.New(fault.Conflict, nil, "a transaction holds it")
		}
		return nil
	}
}

// Refuse has queues refuse bodies for good, not for the moment, until the returned function is called.
func (w *World) Refuse(which func(queue, body string) bool) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = which
	w.noteLocked(nil, "a queue refuses")
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refuse = nil
		w.noteLocked(nil, "no queue refuses")
	}
}

// refused are those of a send that the queue refuses.
func (w *World) refused(queue string, out []message.Outgoing) map[int]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	bad := map[int]error{}
	for i, o := range out {
		if w.refuse != nil && w.refuse(queue, o.Body) {
			bad[i] = fault.New(fault.Invalid, nil, "sending to %s: it refuses the body", queue)
		}
	}
	return bad
}

// send sends what the queue does not refuse.
func (w *World) send(ctx context.Context, queue string, out []message.Outgoing) error {
	bad := w.refused(queue, out)
	if len(bad) == 0 {
		return w.memory.Queues().Send(ctx, queue, out...)
	}
	for i, o := range out {
		if bad[i] != nil {
			continue
		}
		if err := w.memory.Queues().Send(ctx, queue, o); err != nil {
			bad[i] = err
		}
	}
	return &message.Unsent{Failed: bad}
}

// Spoil makes an item unreadable, as a hand or an old program might, and returns what mends
// it: that attribute alone is set back, whatever was written to the others meanwhile.
func (w *World) Spoil(ref item.Ref, attr string, with any) (mend func()) {
	was, err := w.memory.Table().Get(context.Background(), ref)
	if err != nil || was == nil {
		w.violation("there is nothing to spoil at %s: %v", ref, err)
		return func() {}
	}
	w.ledger.distrust(ref)
	w.set(ref, attr, with)
	return func() { w.set(ref, attr, was[attr]) }
}

// Plant puts an item there that no part of the product has written.
func (w *World) Plant(ref item.Ref, attrs item.Item) (remove func()) {
	i := maps.Clone(attrs)
	i[contract.AttrPK], i[contract.AttrSK] = ref.PK, ref.SK
	if ref.SK == "" {
		delete(i, contract.AttrSK)
	}
	w.ledger.distrust(ref)
	w.byHand(item.Write{Ref: ref, Name: "by hand", Put: i})
	return func() { w.byHand(item.Write{Ref: ref, Name: "by hand", Delete: true}) }
}

func (w *World) set(ref item.Ref, attr string, v any) {
	w.byHand(item.Write{Ref: ref, Name: "by hand", Set: map[string]any{attr: v}})
}

func (w *World) byHand(write item.Write) {
	w.note(nil, "by hand: "+write.Ref.String())
	if _, err := w.memory.Table().Write(context.Background(), write); err != nil {
		w.violation("writing %s by hand: %v", write.Ref, err)
	}
}

// Hazards are what people and the world do by chance in Chaos and Timetable besides.
type Hazards struct {
	OddText     bool // payloads, results and errors hold what SQS refuses
	Outages     bool // the table, or a tenant's part of it, is away for up to a minute
	LastSecond  bool // jobs are cancelled in the last second, and an answer before due must hold
	ShortPauses bool // schedules of every second are paused for seconds
}

// cancelAnswered is when a cancel of that job was first answered with its being heard; zero: never.
func (w *World) cancelAnswered(k job.Key) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[k]
}

// hearCancel notes that a cancel was answered.
func (w *Client) hearCancel(path string) {
	id, is := strings.CutSuffix(strings.TrimPrefix(path, "/jobs/"), "/cancel")
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := job.Key{Tenant: w.tenant, ID: job.ID(id)}
	if w.asked[k].IsZero() {
		w.asked[k] = time.Now()
	}
}

// outages hurts the table now and then, for up to a minute.
func (w *World) outages() {
	mine := dice(w.o.Seed, "outages")
	for range 1 + mine.IntN(3) {
		sleepUpTo(mine, 2*time.Minute)
		how := outage
		if mine.IntN(2) == 0 {
			how = throttled(tenants[mine.IntN(len(tenants))])
		}
		w.mu.Lock()
		w.struck = append(w.struck, "the table is hurt at "+clockTime(time.Now()))
		w.mu.Unlock()
		heal := w.Hurt(how)
		time.Sleep(10*time.Second + time.Duration(mine.Int64N(int64(50*time.Second))))
		heal()
	}
}

// cancelsLate has a job accepted, and cancels it in its last second.
func (w *Client) cancelsLate(n int, d *rand.Rand) {
	sleepUpTo(d, 3*time.Minute)
	id := w.Post(fmt.Sprintf("late %d", n), object{"delay": "6s"})
	r, there := w.row(id)
	if !there {
		return
	}
	time.Sleep(time.Until(r.DueAt) - time.Duration(d.Int64N(int64(time.Second))))
	w.Want([]int{200, 202, 409}, "POST", "/jobs/"+string(id)+"/cancel", nil)
}

// somebodyPausesForSeconds has a schedule of every second, which nobody else changes, and pauses
// it for some seconds. What comes back asks at the end whether its word was kept.
func (w *Client) somebodyPausesForSeconds(name string, d *rand.Rand) (kept func()) {
	word := []string{"drop", "last", "all"}[d.IntN(3)]
	sleepUpTo(d, 2*time.Minute)
	body := object{"calendar": every("1s", time.Minute), "job": w.template(Work{})}
	if code, _ := w.Want(orOver(200, 201), "PUT", "/schedules/"+name, body); code == 400 {
		return func() {}
	}
	sleepUpTo(d, 30*time.Second)
	code, v := w.Want(orOver(200), "POST", "/schedules/"+name+"/pause", object{"missed": word})
	if code != 200 {
		return func() {}
	}
	h := heldTimes{effective: effectiveAt(v).Add(2 * w.o.Skew)}
	time.Sleep(3*time.Second + time.Duration(d.Int64N(int64(12*time.Second))))
	h.lifted = time.Now().Add(-2 * w.o.Skew)
	w.Want([]int{200}, "POST", "/schedules/"+name+"/resume", nil)
	return func() {
		h.others = w.pausedBetween(h.effective, h.lifted)
		w.Decided(name, word, h)
	}
}

// turning is a process's clock, which may be set.
type turning struct{ offset atomic.Int64 }

func (c *turning) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// SetClocks sets the clocks of all workers that live so much ahead, or behind.
func (w *World) SetClocks(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.workers {
		p.clock.offset.Store(int64(p.skew + by))
	}
	w.noteLocked(nil, "the workers' clocks are set by "+by.String())
}

// firings is how many messages of jobs wait, hide or are held in the firing queues.
func (w *World) firings() (n int) {
	for _, pool := range contract.Pools {
		for _, priority := range contract.Priorities {
			n += w.holds(contract.FiringQueue(pool, priority))
		}
	}
	return n
}

// wanted is how many jobs are not over, or have not been for long: a message that comes back then
// is dropped.
func (w *World) wanted() (n int) {
	for _, r := range w.ledger.all() {
		if over, is := w.ledger.overAt(r.Key); !is || time.Since(over) < 15*time.Minute {
			n++
		}
	}
	return n
}

// copiesMost is how many messages a job that waits for so long may have in the queues: the one
// that counts, one that a sender's second try made, and one of each look of the sweeper's, who
// looks twice as late each time.
func copiesMost(waited time.Duration) int {
	n := 2
	for at, step := contract.Grace, contract.Grace; at <= waited; at += step {
		n++
		step = min(2*step, contract.MaxPostpone)
	}
	return n
}

// Bounded asks for so long, each minute, that the number of messages stays within bounds.
func (w *World) Bounded(d time.Duration) {
	worst := 0
	for n := range int(d / time.Minute) {
		time.Sleep(time.Minute)
		jobs, most := w.wanted(), copiesMost(time.Duration(n+1)*time.Minute)
		if n := w.firings(); n > most*jobs && n > worst && !w.o.Disturbed {
			if worst == 0 {
				w.violation("%d messages wait for %d jobs, want at most %d for each", n, jobs, most)
			}
			worst = n
		}
	}
	if worst > 0 {
		w.violation("at the worst %d messages waited", worst)
	}
}

// Started asks that each job's first run began within that time of when it was due or, if that
// was later, of from.
func (w *Client) Started(from time.Time, most time.Duration, ids ...job.ID) {
	if w.o.Disturbed {
		return
	}
	for _, id := range ids {
		r, _ := w.row(id)
		due := r.DueAt
		if from.After(due) {
			due = from
		}
		runs := w.of(id)
		if len(runs) == 0 {
			w.violation("job %s, due at %s, never ran", short(id), clockTime(r.DueAt))
		} else if late := runs[0].from.Sub(due); late > most {
			w.violation("job %s started %s late, want at most %s", short(id), late.Round(time.Millisecond), most)
		}
	}
}

// Ended asks that each job was over within that time of the end of its last run.
func (w *Client) Ended(most time.Duration, ids ...job.ID) {
	if w.o.Disturbed {
		return
	}
	for _, id := range ids {
		runs := w.of(id)
		over, there := w.ledger.overAt(job.Key{Tenant: w.tenant, ID: id})
		switch {
		case len(runs) == 0:
			w.violation("job %s never ran", short(id))
		case !there:
			w.violation("job %s is not over", short(id))
		default:
			if late := over.Sub(runs[len(runs)-1].to); late > most {
				late = late.Round(time.Millisecond)
				w.violation("the end of job %s came to its row %s late, want at most %s", short(id), late, most)
			}
		}
	}
}

// many posts n jobs, one due every so often, the first after that.
func (w *Client) many(name string, n int, first, every time.Duration, work Work) (ids []job.ID) {
	from := time.Now()
	for i := range n {
		at := from.Add(first + time.Duration(i)*every).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		ids = append(ids, w.Post(name+" "+time.Duration(i).String(), object{"run_at": at, "payload": work, "timeout": "30m"}))
	}
	return ids
}

// heldTimes is from when to when a pause held the times of a schedule.
type heldTimes struct {
	effective, lifted time.Time // nothing starts after, nothing is held from
	others            bool      // another pause may hold the same times: of two words the stricter counts
}

// sure are those fates whose times certainly fell due under the pause.
func (h heldTimes) sure(list []fate) (under []fate) {
	for _, f := range list {
		if f.DueAt.After(h.effective.Add(100*time.Millisecond)) && f.DueAt.Before(h.lifted.Add(-100*time.Millisecond)) {
			under = append(under, f)
		}
	}
	return under
}

// pausedBetween says whether a pause of everything, or of a task, stood at some time between.
func (w *Client) pausedBetween(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pauses, func(h hold) bool {
		return h.tenant == w.tenant && h.since.Before(to.Add(time.Minute)) && (h.lifted.IsZero() || h.lifted.After(from.Add(-time.Minute)))
	})
}

// Decided asks that what fell due under a pause became of what the pause's word says.
func (w *Client) Decided(name, word string, h heldTimes) {
	list := w.fates(w.key(name))
	if w.o.Disturbed {
		return
	}
	under := h.sure(list)
	if len(under) == 0 && w.faults() == 0 {
		w.violation("nothing fell due under the pause")
		return
	}
	ran := 0
	for _, f := range under {
		if len(w.runs(f.row.Key)) > 0 {
			ran++
		} else if f.outcome != schedule.Skipped {
			at := clockTime(f.NominalAt)
			w.violation("%s fell due under the pause, did not run, and is told as %q (%s)", at, f.outcome, f.reason)
		}
	}
	want := map[string][2]int{"drop": {0, 0}, "last": {0, 1}, "all": {len(under), len(under)}}[word]
	if h.others {
		want[0] = 0
	}
	if ran < want[0] || ran > want[1] {
		w.violation("of %d times that fell due under the pause %d ran, and the word is %q", len(under), ran, word)
	}
}
