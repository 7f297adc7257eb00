package job

import (
	"strings"
	"testing"
	"time"

	"punctual/shared/contract"
)

//proof:of 75
func TestRow_IsKeptAMonthWhenFinishedAndThreeWhenDead(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for want, o := range map[time.Duration]Outcome{30 * day: succeeded("1"), 90 * day: failed(true)} {
		d, err := Settle(new(scheduled()), 1, o, noon)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.After.ExpiresAt.Sub(noon); got != want {
			t.Errorf("a job that is %s is kept for %s, want %s", d.After.Status, got, want)
		}
	}
	if d, _ := Settle(new(scheduled()), 1, failed(false), noon); !d.After.ExpiresAt.IsZero() {
		t.Error("a job that is to run again may be forgotten before")
	}
}

// S24: a message keeps the time of its first send when it moves, and a redrive needs more than it.
//
//proof:of 75 S24
func TestDeadLetter_OutlivesItsQueue(t *testing.T) {
	t.Parallel()
	kept := map[string]time.Duration{}
	for _, q := range contract.Queues() { // DLQs come first
		kept[q.Name] = q.Retention
		if q.DeadLetter != "" && kept[q.DeadLetter] <= q.Retention {
			t.Errorf("%s keeps a message for %s, its dead-letter queue for %s", q.Name, q.Retention, kept[q.DeadLetter])
		}
	}
	if longest := kept[contract.DeadLetters]; longest != 14*24*time.Hour || contract.DeadKept <= longest {
		t.Errorf("a dead letter is kept for %s, its row for %s", longest, contract.DeadKept)
	}
	// The payload was written when the job was accepted, as early as it may be.
	r := scheduled(func(r *Row) { r.CreatedAt, r.DueAt = noon, noon.AddDate(2, 0, 0) })
	dead, _ := Settle(&r, 1, failed(true), r.DueAt)
	at, _ := r.PutContent(PayloadContent(1), "{}").Put[contract.AttrExpiresAt].(int64)
	if time.Unix(at, 0).Before(dead.After.ExpiresAt) {
		t.Errorf("the payload goes at %s, the dead row at %s", time.Unix(at, 0).UTC(), dead.After.ExpiresAt)
	}
}

//proof:of F09
func TestJob_ContentsAreForgottenWithTheirRow(t *testing.T) {
	t.Parallel()
	long := succeeded(`"` + strings.Repeat("x", contract.MaxInlineResult) + `"`)
	d, err := Settle(new(scheduled()), 1, long, noon)
	if err != nil || len(d.Contents) != 1 {
		t.Fatalf("%v, %v", d.Contents, err)
	}
	if at := d.Contents[0].Put[contract.AttrExpiresAt]; at != d.After.ExpiresAt.Unix() {
		t.Errorf("a result expires at %v, its row at %v", at, d.After.ExpiresAt.Unix())
	}
	died := failed(true)
	died.Error.Message = strings.Repeat("x", contract.MaxInlineError+1)
	if d, err = Settle(new(scheduled()), 1, died, noon); err != nil || len(d.Contents) != 1 {
		t.Fatalf("%v, %v", d.Contents, err)
	}
	if at := d.Contents[0].Put[contract.AttrExpiresAt]; at != d.After.ExpiresAt.Unix() {
		t.Errorf("an attempt expires at %v, its row at %v", at, d.After.ExpiresAt.Unix())
	}
	for name, c := range map[string]struct {
		change func(*Row)
		want   string
	}{
		"nothing beside it":       {func(*Row) {}, ""},
		"a payload in an item":    {func(r *Row) { r.PayloadIn, r.PayloadVer = InItem, 3 }, "#0"},
		"a payload in the bucket": {func(r *Row) { r.PayloadIn, r.PayloadVer = InBlob, 3 }, "#3"},
		"a result":                {func(r *Row) { r.ResultIn = InItem }, "#0"},
		"a result in the bucket":  {func(r *Row) { r.ResultIn, r.ResultRef = InBlob, "2.7" }, "#0#2.7"},
		"tags":                    {func(r *Row) { r.Tagged = true }, "#0"},
		"attempts before":         {func(r *Row) { r.Attempt = 2 }, "#0"},
	} {
		r := scheduled(c.change)
		ask, ok := Forgotten(r)
		want := ""
		if c.want != "" {
			want = "forget#" + string(r.Tenant) + "#" + string(r.ID) + c.want
		}
		if ok != (want != "") || ask.Slice != want {
			t.Errorf("%s: asks for %q, want %q", name, ask.Slice, want)
		}
	}
}
