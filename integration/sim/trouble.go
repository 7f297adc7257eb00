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

// Troubles last for a while, unlike the faults of a plan, which hit single calls: an unreachable
// table, a queue that refuses messages, an unreadable item, a clock that is set.

// Trouble returns the error of a call of the table; nil lets the call through.
type Trouble func(stage string, of item.Ref) error

// Hurt makes calls of the table fail until heal is called.
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

// Stick makes reads of an item by a stage never return, whatever becomes of their context, until free is called.
func (w *World) Stick(stage string, ref item.Ref) (free func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	freed := make(chan struct{})
	w.stuck[stuckAt{stage, ref}] = freed
	w.noteLocked(nil, "stuck: "+ref.String())
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.stuck, stuckAt{stage, ref})
		close(freed)
	}
}

// stuckAt names the calls that do not return.
type stuckAt struct {
	stage string
	ref   item.Ref
}

// stick waits while reads of the item by the process do not return.
func (w *World) stick(p *process, ref item.Ref) {
	w.mu.Lock()
	freed := w.stuck[stuckAt{p.stage, ref}]
	w.mu.Unlock()
	if freed != nil {
		<-freed
	}
}

// hurt returns the error of a call about these items, nil if there is none.
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

// outage fails every call.
func outage(string, item.Ref) error { return fault.New(fault.Unavailable, nil, "the table is away") }

// throttled fails every call about a tenant's items.
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

// conflicting fails writes of a claim, as another transaction on it would.
func conflicting(k job.Key) Trouble {
	return func(_ string, r item.Ref) error {
		if r.Table == contract.Claims && strings.HasSuffix(r.PK, "#"+string(k.ID)) {
			return fault.New(fault.Conflict, nil, "a transaction holds it")
		}
		return nil
	}
}

// Refuse makes queues refuse bodies for good until stop is called.
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

// refused returns the errors of messages that the queue refuses, by index.
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

// Spoil makes an item unreadable. mend restores only that attribute, whatever was written to the
// others meanwhile.
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

// Plant puts an item that no part of the product has written.
func (w *World) Plant(ref item.Ref, attrs item.Item) (remove func()) {
	i := maps.Clone(attrs)
	i[contract.AttrPK], i[contract.AttrSK] = ref.PK, ref.SK
	if ref.SK == "" {
		delete(i, contract.AttrSK)
	}
	w.ledger.distrust(ref)
	w.overwrite(item.Write{Ref: ref, Name: "by hand", Put: i})
	return func() { w.overwrite(item.Write{Ref: ref, Name: "by hand", Delete: true}) }
}

func (w *World) set(ref item.Ref, attr string, v any) {
	w.overwrite(item.Write{Ref: ref, Name: "by hand", Set: map[string]any{attr: v}})
}

func (w *World) overwrite(write item.Write) {
	w.note(nil, "by hand: "+write.Ref.String())
	if _, err := w.memory.Table().Write(context.Background(), write); err != nil {
		w.violation("writing %s by hand: %v", write.Ref, err)
	}
}

// Hazards are what people and AWS do by chance in Chaos and Timetable, besides faults.
type Hazards struct {
	OddText     bool // payloads, results and errors hold what SQS refuses
	Outages     bool // the table, or a tenant's part of it, is unavailable for up to a minute
	LastSecond  bool // jobs are cancelled in the last second, and an answer before due must hold
	ShortPauses bool // schedules of every second are paused for seconds
	Afters      bool // jobs come after any others
}

// cancelAnswered returns when a cancel of the job was first accepted; zero: never.
func (w *World) cancelAnswered(k job.Key) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[k]
}

// hearCancel notes that a cancel was accepted.
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

// outages makes the table unavailable at random times, for up to a minute each.
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

// cancelsLate posts a job and cancels it in its last second.
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

// userPausesForSeconds puts a schedule of every second, which nothing else changes, and pauses
// it for some seconds. kept verifies at the end what the pause did.
func (w *Client) userPausesForSeconds(name string, d *rand.Rand) (kept func()) {
	missed := []string{"drop", "last", "all"}[d.IntN(3)]
	sleepUpTo(d, 2*time.Minute)
	body := object{"calendar": every("1s", time.Minute), "job": w.template(Work{})}
	if code, _ := w.Want(orOver(200, 201), "PUT", "/schedules/"+name, body); code == 400 {
		return func() {}
	}
	sleepUpTo(d, 30*time.Second)
	code, v := w.Want(orOver(200), "POST", "/schedules/"+name+"/pause", object{"missed": missed})
	if code != 200 {
		return func() {}
	}
	h := heldTimes{effective: effectiveAt(v).Add(2 * w.o.Skew)}
	time.Sleep(3*time.Second + time.Duration(d.Int64N(int64(12*time.Second))))
	h.lifted = time.Now().Add(-2 * w.o.Skew)
	w.Want([]int{200}, "POST", "/schedules/"+name+"/resume", nil)
	return func() {
		h.others = w.pausedBetween(h.effective, h.lifted)
		w.Decided(name, missed, h)
	}
}

// turning is a process's clock, which can be set.
type turning struct{ offset atomic.Int64 }

func (c *turning) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// SetClocks sets the clocks of all living workers ahead by so much.
func (w *World) SetClocks(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.workers {
		p.clock.offset.Store(int64(p.skew + by))
	}
	w.noteLocked(nil, "the workers' clocks are set by "+by.String())
}

// firings returns how many messages of jobs are in the firing queues, visible or not.
func (w *World) firings() (n int) {
	for _, pool := range contract.Pools {
		for _, priority := range contract.Priorities {
			n += w.holds(contract.FiringQueue(pool, priority))
		}
	}
	return n
}

// wanted returns how many jobs are unfinished or ended lately: a later message of such a job is
// dropped.
func (w *World) wanted() (n int) {
	for _, r := range w.ledger.all() {
		if over, is := w.ledger.overAt(r.Key); !is || time.Since(over) < 15*time.Minute {
			n++
		}
	}
	return n
}

// copiesMost returns how many messages a job that has waited so long may have in the queues: the
// one that counts, one from a repeated send, and one for each look of the sweeper, whose intervals
// double.
func copiesMost(waited time.Duration) int {
	n := 2
	for at, step := contract.Grace, contract.Grace; at <= waited; at += step {
		n++
		step = min(2*step, contract.MaxPostpone)
	}
	return n
}

// Bounded verifies each minute, for that long, that the number of messages stays bounded.
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

// Started verifies that each job's first run began within most of its due time or of from,
// whichever is later.
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

// Ended verifies that each job was final within most of the end of its last run.
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

// many posts n jobs, the first due after first, the others in steps of every.
func (w *Client) many(name string, n int, first, every time.Duration, work Work) (ids []job.ID) {
	from := time.Now()
	for i := range n {
		at := from.Add(first + time.Duration(i)*every).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		ids = append(ids, w.Post(name+" "+time.Duration(i).String(),
			object{"run_at": at, "payload": work, "timeout": "30m"}))
	}
	return ids
}

// heldTimes says when a pause held the times of a schedule.
type heldTimes struct {
	effective, lifted time.Time // nothing starts after effective, nothing is held from lifted on
	others            bool      // another pause may hold the same times: of two policies the stricter counts
}

// sure returns the fates whose times certainly fell due under the pause.
func (h heldTimes) sure(list []fate) (under []fate) {
	for _, f := range list {
		if f.DueAt.After(h.effective.Add(100*time.Millisecond)) && f.DueAt.Before(h.lifted.Add(-100*time.Millisecond)) {
			under = append(under, f)
		}
	}
	return under
}

// pausedBetween reports whether a pause of everything, or of a task, was in force at some time
// between.
func (w *Client) pausedBetween(from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pauses, func(h hold) bool {
		return h.tenant == w.tenant && h.since.Before(to.Add(time.Minute)) &&
			(h.lifted.IsZero() || h.lifted.After(from.Add(-time.Minute)))
	})
}

// Decided verifies that times which fell due under a pause were treated by its policy for missed
// times.
func (w *Client) Decided(name, missed string, h heldTimes) {
	list := w.fates(w.key(name))
	if w.o.Disturbed {
		return
	}
	under := h.sure(list)
	if len(under) == 0 && w.faults() == 0 {
		w.violation("nothing fell due under the pause")
		return
	}
	ran, skipped := 0, 0
	for _, f := range under {
		if w.lostOwner(f.row.Key) { // whatever the policy says: it may have begun before
			skipped++
			continue
		}
		late := f.reason == schedule.ReasonOutage && f.row.FinishedAt.Sub(h.lifted) > schedule.DefaultAfter
		if late && w.faults() > 0 {
			skipped++ // faults kept all workers from it after the pause: that wait counts for catch_up
			continue
		}
		if len(w.runs(f.row.Key)) > 0 {
			ran++
		} else if f.outcome != schedule.Skipped {
			at := clockTime(f.NominalAt)
			w.violation("%s fell due under the pause, did not run, and is shown as %q (%s)", at, f.outcome, f.reason)
		}
	}
	all := len(under) - skipped
	want := map[string][2]int{"drop": {0, 0}, "last": {0, 1}, "all": {all, all}}[missed]
	if h.others {
		want[0] = 0
	}
	if ran < want[0] || ran > want[1] {
		w.violation("of %d times that fell due under the pause %d ran, and missed is %q", len(under), ran, missed)
	}
}
