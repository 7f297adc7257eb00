package message

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"punctual/shared/fault"
	"punctual/shared/text"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

var due = time.Date(2027, 3, 28, 12, 0, 0, 250e6, time.UTC)

func firing() Firing {
	return Firing{V: V, Tenant: "acme", JobID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Version: 3, Attempt: 2, DueAt: due}
}

// golden holds one body of each type by the name of its file, which is never changed once released. A
// number in it that is higher than the body's own version is that of a field more.
func golden() map[string]any {
	f := firing()
	return map[string]any{
		"firing.v1":             f,
		"dispatch-job.v1":       Dispatch{V: V, Firing: &f, Pool: "short", Priority: "normal"},
		"dispatch-slice.v1":     Dispatch{V: V, Slice: "2027-03-28T12:00#17", At: due, Round: 1},
		"dispatch-run.v1":       Dispatch{V: V, Slice: "reconcile#acme#" + f.JobID},
		"dispatch-fire.v2":      Ask(Verb{Fire: &Minute{At: due.Truncate(time.Minute), Shard: 17}}),
		"dispatch-unpark.v2":    Ask(Verb{Unpark: &Parking{Tenant: "acme", Shard: 3}}),
		"dispatch-line.v2":      Ask(Verb{Line: &Schedule{Tenant: "acme", Schedule: "nightly"}}),
		"dispatch-promote.v2":   Ask(Verb{Promote: &Schedule{Tenant: "acme", Schedule: "nightly"}}),
		"dispatch-reconcile.v2": Ask(Verb{Reconcile: &Run{Tenant: "acme", RunID: f.JobID}}),
		"dispatch-forget.v2":    Ask(Verb{Forget: &Forget{Tenant: "acme", JobID: f.JobID, Payload: 3, Result: "2.7"}}),
		"report-running.v1": Report{V: V, Kind: Running, Tenant: "acme", JobID: f.JobID, Version: 3, Attempt: 2,
			Token: 4, Worker: "w1", Outcome: []byte(`{"started_at":"2027-03-28T12:00:00.25Z"}`)},
		"report-ended.v1": Report{V: V, Kind: Ended, Tenant: "acme", JobID: f.JobID, Version: 3, Attempt: 2, Token: 4,
			Worker: "w1", Outcome: []byte(`{"kind":"succeeded","result":{"n":1}}`)},
		"report-freed.v1": Report{V: V, Kind: Ended, Tenant: "acme", JobID: f.JobID, Version: 3, Attempt: 2, Token: 4,
			Freed: []bool{false, true}},
		"report-repeated.v1": Report{V: V, Kind: Ended, Tenant: "acme", JobID: f.JobID, Version: 3, Attempt: 2,
			Token: 4},
		"report-look.v1": Report{V: V, Kind: Reevaluate, Tenant: "acme", JobID: f.JobID, Version: 3, Attempt: 2},
		"collect.v1":     Collect{V: V, Collect: true, Round: 2},
		"letter.v1": DeadLetter{V: V, Tenant: "acme", JobID: f.JobID, Task: "email", DeadAt: due, SentAt: due,
			Code: "timeout", Message: "took longer than 30s", Attempts: 6},
		"letter.v2": DeadLetter{V: V, Tenant: "acme", JobID: f.JobID, Task: "email", DeadAt: due, SentAt: due,
			Code: "timeout", Message: "took longer than 30s", Attempts: 6, Metadata: []byte(`{"ticket":7}`)},
		"letter.v3": DeadLetter{V: V, Tenant: "acme", JobID: f.JobID, Task: "email", DeadAt: due, SentAt: due,
			Code: "timeout", Message: "took longer than 30s", Attempts: 6, RunID: "01ARZ3NDEKTSV4RRFFQ69G5FB0",
			Node: "merge"},
	}
}

func decode(name, body string) (any, error) {
	kind, _, _ := strings.Cut(name, ".")
	switch kind, _, _ := strings.Cut(kind, "-"); kind {
	case "firing":
		return Decode[Firing](body)
	case "dispatch":
		return Decode[Dispatch](body)
	case "report":
		return Decode[Report](body)
	case "collect":
		return Decode[Collect](body)
	default:
		return Decode[DeadLetter](body)
	}
}

//proof:of 60 71 72 191 199
func TestMessages_KeepTheirBytes(t *testing.T) {
	for name, body := range golden() {
		file := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(file, []byte(Encode(body)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := Encode(body); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s is written as\n%s\nthe golden file holds\n%s", name, got, want)
		}
		back, err := decode(name, string(want))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := Encode(back); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s lost something on the way:\n%s", name, got)
		}
	}
}

//proof:of S41
func TestDecode_NamesABadBodyAndNeverQuotesIt(t *testing.T) {
	t.Parallel()
	whole := Encode(firing())
	bodies := map[string]string{
		"empty": "", "not JSON": "hunter2", "truncated": whole[:len(whole)/2], "no version": `{"tenant":"hunter2"}`,
		"a later version": strings.Replace(whole, `"v":1`, `"v":2`, 1), "an older version": strings.Replace(whole,
			`"v":1`, `"v":0`, 1),
		"wrong type": strings.Replace(whole, `"attempt":2`, `"attempt":["hunter2"]`, 1), "trailing data": whole + whole,
		"no job":    strings.Replace(whole, `"job_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`, `"job_id":""`, 1),
		"attempt 0": strings.Replace(whole, `"attempt":2`, `"attempt":0`, 1), "an array": "[1]", "null": "null",
		"a tenant that is none": strings.Replace(whole, `"acme"`, `"acme#hunter2"`, 1),
		"the tenant of all":     strings.Replace(whole, `"acme"`, `"*"`, 1),
	}
	for name, body := range bodies {
		_, err := Decode[Firing](body)
		if fault.KindOf(err) != fault.Undecodable || fault.Retryable(err) {
			t.Errorf("%s: got %v, want an undecodable fault", name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes the body: %v", name, err)
		}
	}
	for name, d := range map[string]Dispatch{"neither": {V: V}, "both": {V: V, Slice: "x", Firing: new(Firing)}} {
		if _, err := Decode[Dispatch](Encode(d)); fault.KindOf(err) != fault.Undecodable {
			t.Errorf("a dispatch of %s was read", name)
		}
	}
	if _, err := Decode[DeadLetter](Encode(DeadLetter{V: V, Tenant: "a#b", JobID: "x", DeadAt: due})); fault.KindOf(
		err) != fault.Undecodable {
		t.Error("a letter of no tenant was read")
	}
	for name, r := range map[string]Report{"no tenant": {V: V, Kind: Reevaluate, Tenant: "a/b", JobID: "b", Attempt: 1},
		"unknown kind": {V: V, Kind: "x", Tenant: "a", JobID: "b", Attempt: 1}} {
		if _, err := Decode[Report](Encode(r)); fault.KindOf(err) != fault.Undecodable {
			t.Errorf("a report with %s was read", name)
		}
	}
}

func TestUnsent_NamesEachCauseOnce(t *testing.T) {
	t.Parallel()
	throttled := fault.New(fault.Throttled, errors.New("slow down"), "sending to report")
	u := &Unsent{Failed: map[int]error{7: throttled, 2: fault.New(fault.TooLarge, nil, "sending to report"),
		9: throttled}}
	if got, want := u.Error(),
		"3 messages were not sent: sending to report: too_large; sending to report: throttled: slow down"; got != want {
		t.Errorf("it says %q; want %q", got, want)
	}
	many := &Unsent{Failed: map[int]error{}}
	for n := range 100 {
		many.Failed[n] = fault.New(fault.Invalid, nil, "sending entry %d", n)
	}
	if got := many.Error(); !strings.HasSuffix(got, "entry 2: invalid; and 97 other causes") {
		t.Errorf("of a hundred causes it says %q", got)
	}
}

// One message that can never be sent must not keep the others from being sent again.
func TestUnsent_IsRetryableIfAnyOfItIs(t *testing.T) {
	t.Parallel()
	for range 20 { // a map's order would show
		u := &Unsent{Failed: map[int]error{}}
		for n := range 10 {
			u.Failed[n] = fault.New(fault.TooLarge, nil, "sending")
		}
		if fault.Retryable(u) || fault.KindOf(u) != fault.TooLarge {
			t.Fatal("what is too large is worth another try")
		}
		u.Failed[6] = fault.New(fault.Unavailable, nil, "sending")
		if !fault.Retryable(u) {
			t.Fatal("one that was not sent for lack of an answer is not worth another try")
		}
	}
}

//proof:of F01
func TestEncode_IsSendableWhateverTextsABodyHolds(t *testing.T) {
	t.Parallel()
	nasty := "a\x00b\x0b\x1f \uffff\ufffe \xff\xed\xa0\x80 <&>"
	f := firing()
	f.Tenant, f.JobID = nasty, nasty
	for name, body := range map[string]any{
		"firing":   f,
		"dispatch": Dispatch{V: V, Firing: &f, Pool: nasty, Priority: nasty, Slice: nasty, Cursor: nasty},
		"report": Report{V: V, Kind: ReportKind(nasty), Tenant: nasty, JobID: nasty, Worker: nasty,
			Outcome: []byte("{\"result\":\"\uffff\xff\"}")},
		"letter": DeadLetter{V: V, Tenant: nasty, JobID: nasty, Task: nasty, Code: nasty, Message: nasty,
			RedriveOf: nasty},
	} {
		if got := Encode(body); !text.Allowed(got) {
			t.Errorf("a %s holds characters that no queue takes: %q", name, got)
		} else if strings.Contains(got, `\u003c`) {
			t.Errorf("a %s has its markup escaped: %s", name, got)
		}
	}
}
