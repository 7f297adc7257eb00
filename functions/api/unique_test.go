package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// keyed is a job with a unique key; more are its other fields, each with a comma before it.
func keyed(conflict, more string) string {
	return `{"task":"echo","delay":"1h","unique":{"key":"k","on_conflict":"` + conflict + `"}` + more + `}`
}

func TestUnique_IsShownWithItsDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","unique":{"key":"invoice-42"}}`)
	r := b.want(t, 200, "GET", "/v1/jobs/"+id, "")
	if fmt.Sprint(r.body["unique"]) != "map[key:invoice-42 on_conflict:return until:done]" {
		t.Errorf("shown as %v", r.body["unique"])
	}
	if r := b.want(t, 200, "GET", "/v1/jobs/"+b.post(t, `{"task":"echo"}`), ""); r.body["unique"] != nil {
		t.Errorf("a job without a key shows %v", r.body["unique"])
	}
}

func TestUnique_RefusesBadKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := func(s string) string { return `{"task":"echo","unique":{"key":` + s + `}}` }
	for _, c := range []wrong{
		{"no object", `{"task":"echo","unique":"k"}`, 400, "invalid_value", "/unique"},
		{"null", `{"task":"echo","unique":null}`, 400, "invalid_value", "/unique"},
		{"without a key", `{"task":"echo","unique":{"until":"done"}}`, 400, "missing_field", "/unique/key"},
		{"an empty key", key(`""`), 400, "invalid_value", "/unique/key"},
		{"a number as key", key(`42`), 400, "invalid_value", "/unique/key"},
		{"a key of 257 characters", key(`"` + strings.Repeat("é", 257) + `"`), 400, "invalid_value", "/unique/key"},
		{"a key with a line break", key(`"a\nb"`), 400, "invalid_value", "/unique/key"},
		{"a key that is a secret", key(`"AKIA` + `IOSFODNN7EXAMPLE"`), 400, "secret_in_payload", "/unique/key"},
		{"another until", `{"task":"echo","unique":{"key":"k","until":"dead"}}`, 400, "invalid_value", "/unique/until"},
		{"another conflict", `{"task":"echo","unique":{"key":"k","on_conflict":"skip"}}`, 400, "invalid_value",
			"/unique/on_conflict"},
		{"an unknown field", `{"task":"echo","unique":{"key":"k","for":"1h"}}`, 400, "unknown_field", "/unique/for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, b, c, b.do(t, "POST", "/v1/jobs", c.body))
		})
	}
	b.want(t, 202, "POST", "/v1/jobs", key(`"`+strings.Repeat("é", 256)+`"`))
	b.want(t, 202, "POST", "/v1/jobs", key(`"a#b\\c d"`))
	if r := b.do(t, "PUT", "/v1/tasks/x", `{"executor":"go","unique":{"key":"k"}}`); r.str("code") != "unknown_field" {
		t.Errorf("a task takes a unique key: %s", r.text)
	}
}

func TestUnique_ReturnsTheJobThatHoldsTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, keyed("return", `,"payload":{"n":1}`))
	r := b.want(t, 200, "POST", "/v1/jobs", keyed("return", `,"payload":{"n":2},"priority":"high"`))
	if r.str("job_id") != id || fmt.Sprint(r.body["payload"]) != "map[n:1]" || r.header.Get("ETag") != `"1"` ||
		r.header.Get("Location") != "/v1/jobs/"+id || r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("answered %v %s", r.header, r.text)
	}
	if n := b.Meter.Total("jobs_accepted_total"); n != 1 {
		t.Errorf("%v jobs were accepted", n)
	}
	who := b.who
	b.who = all("globex")
	if other := b.post(t, keyed("return", "")); other == id {
		t.Error("the key of one tenant holds that of another")
	}
	b.who = who
	b.claim(t, id)
	if r := b.want(t, 200, "POST", "/v1/jobs", keyed("return", "")); r.str("job_id") != id {
		t.Errorf("while it runs: %s", r.text)
	}
}

func TestUnique_RefusesAJobWhoseKeyIsHeld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, keyed("return", ""))
	r := b.want(t, 409, "POST", "/v1/jobs", keyed("reject", ""))
	if r.str("code") != "not_unique" || r.str("job_id") != id || !strings.Contains(r.str("detail"), id) {
		t.Errorf("answered %s", r.text)
	}
}

// ends are the ways in which a job becomes final.
var ends = map[job.Status]func(b *bench, t *testing.T, id string){
	job.Succeeded: func(b *bench, t *testing.T, id string) { b.end(t, id, job.Outcome{Kind: job.OutcomeSucceeded}) },
	job.Dead: func(b *bench, t *testing.T, id string) {
		b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Permanent: true, Error: &job.Reason{Code: "x"}})
	},
	job.Cancelled: func(b *bench, t *testing.T, id string) { b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "") },
	job.Expired: func(b *bench, t *testing.T, id string) {
		r, w := job.RequestStop(b.row(t, id), job.StopExpire, job.Reason{Code: job.CodeExpireAfter}, b.clock.Now())
		b.Write(w)
		_, w = job.FinishStop(r, b.clock.Now())
		b.Write(w)
	},
	job.Skipped: func(b *bench, t *testing.T, id string) {
		_, w := job.Skip(b.row(t, id), job.Reason{Code: job.CodeLimitFull}, b.clock.Now())
		b.Write(w)
	},
}

func TestUnique_IsFreeInTheWriteThatEndsTheJob(t *testing.T) {
	t.Parallel()
	for status, end := range ends {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := b.post(t, keyed("reject", ""))
			b.want(t, 409, "POST", "/v1/jobs", keyed("reject", ""))
			end(b, t, first)
			if is := b.row(t, first).Status; is != status {
				t.Fatalf("it is %s", is)
			}
			second := b.post(t, keyed("reject", ""))
			if r := b.want(t, 409, "POST", "/v1/jobs", keyed("reject", "")); r.str("job_id") != second {
				t.Errorf("answered %s", r.text)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		first := b.post(t, keyed("reject", ""))
		b.want(t, 200, "POST", "/v1/jobs/"+first+"/cancel", "")
		b.want(t, 204, "DELETE", "/v1/jobs/"+first, "")
		b.post(t, keyed("reject", ""))
	})
}

func TestUnique_UntilStartedIsFreeOnceTheJobHasStarted(t *testing.T) {
	t.Parallel()
	body := `{"task":"echo","unique":{"key":"k","until":"started"}}`
	lost := func(b *bench, t *testing.T, id string) {
		b.claim(t, id)
		b.clock.at = b.clock.at.Add(contract.Lease + time.Second)
	}
	for name, c := range map[string]struct {
		start func(b *bench, t *testing.T, id string)
		free  bool
	}{
		"waits":                    {func(*bench, *testing.T, string) {}, false},
		"claimed, and not started": {func(b *bench, t *testing.T, id string) { b.claim(t, id) }, false},
		"claimed and given back": {func(b *bench, t *testing.T, id string) {
			b.Write(job.LetGo(b.key(id), 1, b.claim(t, id).Token))
		}, false},
		"its start is marked": {func(b *bench, t *testing.T, id string) {
			c := b.claim(t, id)
			b.Write(job.BeginAttempt(b.key(id), 1, c.Token, c.LeaseUntil, b.clock.Now()))
		}, true},
		"its worker was lost before it marked the start": {lost, false},
		"it waits for a retry": {func(b *bench, t *testing.T, id string) {
			b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Error: &job.Reason{Code: "x"}})
		}, true},
		"a later attempt is claimed, and the row was read before": {func(b *bench, t *testing.T, id string) {
			r := b.row(t, id)
			b.Write(job.ClaimNew(r.Key, 2, job.Owner{LeaseUntil: b.clock.Now().Add(contract.Lease), DueAt: r.DueAt}))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.post(t, body)
			c.start(b, t, id)
			if c.free {
				b.post(t, body)
			} else if r := b.want(t, 200, "POST", "/v1/jobs", body); r.str("job_id") != id {
				t.Errorf("answered %s", r.text)
			}
		})
	}
}

func TestUnique_ReplacesEveryFieldOfTheJobThatHoldsTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 201, "PUT", "/v1/limits/github", `{"max_running":1}`)
	id := b.post(t, keyed("return", `,"payload":{"n":1},"tags":{"a":"b"},"metadata":{"m":1},"expire_after":"2h",
		"limits":[{"name":"github"}]`))
	r := b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","run_at":"2027-03-01T14:00:00Z","payload":{"n":2},
		"priority":"high","pool":"long","timeout":"20h","start_within":"5m","retry":{"max_attempts":7},
		"metadata":{"m":2},"unique":{"key":"k","on_conflict":"replace","until":"started"}}`)
	if r.str("job_id") != id || r.body["version"] != 2.0 || r.str("due_at") != "2027-03-01T14:00:00.000Z" ||
		r.str("priority") != "high" || r.str("pool") != "long" || r.str("timeout") != "20h" ||
		r.str("start_within") != "5m" || r.body["expire_after"] != nil || r.body["limits"] != nil ||
		r.body["tags"] != nil || fmt.Sprint(r.body["metadata"]) != "map[m:2]" || r.body["max_attempts"] != 7.0 ||
		fmt.Sprint(r.body["payload"]) != "map[n:2]" ||
		fmt.Sprint(r.body["unique"]) != "map[key:k on_conflict:return until:done]" {
		t.Errorf("answered %s", r.text)
	}
	if row := b.row(t, id); !row.ExpiryAt.IsZero() || row.CreatedAt.After(noon) {
		t.Errorf("the row is %+v", row)
	}
	r = b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","unique":{"key":"k","on_conflict":"replace"}}`)
	if r.str("status") != "QUEUED" || r.body["payload"] != nil || r.str("pool") != "short" ||
		r.str("priority") != "normal" || r.body["max_attempts"] == 7.0 || r.body["metadata"] != nil {
		t.Errorf("without fields: %s", r.text)
	}
	if got := b.Received(contract.FiringQueue("short", "normal")); len(got) != 1 ||
		!strings.Contains(got[0].Body, `"version":3`) {
		t.Errorf("firings: %v", got)
	}
}

func TestUnique_ReplacesTheContentsOfAnySize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, keyed("replace", `,"payload":1`))
	for _, size := range []int{contract.MaxInlinePayload + 1, contract.MaxItem + 1, 10} {
		payload := `"` + strings.Repeat("x", size) + `"`
		b.want(t, 200, "POST", "/v1/jobs", keyed("replace", `,"payload":`+payload))
		if is, err := b.Store.Payload(context.Background(), b.row(t, id)); err != nil || string(is) != payload {
			t.Errorf("of %d bytes %d were kept, %v", size, len(is), err)
		}
	}
}

func TestUnique_ReplacesNoJobThatWasClaimed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench, t *testing.T, id string){
		"claimed": func(b *bench, t *testing.T, id string) { b.claim(t, id) },
		"between attempts": func(b *bench, t *testing.T, id string) {
			b.end(t, id, job.Outcome{Kind: job.OutcomeFailed, Error: &job.Reason{Code: "x"}})
		},
		"started, and its worker was lost": func(b *bench, t *testing.T, id string) {
			b.claim(t, id)
			b.clock.at = b.clock.at.Add(time.Hour + contract.Lease + time.Second)
		},
		"about to be cancelled": func(b *bench, t *testing.T, id string) {
			_, w := job.RequestStop(b.row(t, id), job.StopCancel, job.Reason{}, b.clock.Now())
			b.Write(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.post(t, keyed("replace", `,"payload":1`))
			change(b, t, id)
			r := b.want(t, 409, "POST", "/v1/jobs", keyed("replace", `,"payload":2`))
			if r.str("code") != "not_unique" || r.str("job_id") != id || b.row(t, id).Payload != "1" {
				t.Errorf("answered %s", r.text)
			}
		})
	}
	t.Run("of another task", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.want(t, 201, "PUT", "/v1/tasks/other", `{"executor":"go"}`)
		id := b.post(t, keyed("replace", ""))
		r := b.want(t, 409, "POST", "/v1/jobs", strings.Replace(keyed("replace", ""), "echo", "other", 1))
		if r.str("code") != "not_unique" || r.str("job_id") != id || !strings.Contains(r.str("detail"), "echo") {
			t.Errorf("answered %s", r.text)
		}
		r = b.want(t, 200, "POST", "/v1/jobs", strings.Replace(keyed("return", ""), "echo", "other", 1))
		if r.str("job_id") != id {
			t.Errorf("returned %s", r.text)
		}
	})
}

func TestUnique_ReplacedJobThatWaitsForOthersStaysBlocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := b.post(t, `{"task":"echo","delay":"1h"}`)
	id := b.post(t, `{"task":"echo","after":["`+parent+`"],"unique":{"key":"k"},"payload":1}`)
	r := b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","unique":{"key":"k","on_conflict":"replace"},"payload":2,
		"run_at":"2027-03-02T00:00:00Z"}`)
	if r.str("job_id") != id || r.str("status") != "BLOCKED" || fmt.Sprint(r.body["after"]) != "["+parent+"]" ||
		b.row(t, id).Payload != "2" || r.str("due_at") != "2027-03-02T00:00:00.000Z" {
		t.Errorf("answered %s", r.text)
	}
	r = b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","unique":{"key":"k","on_conflict":"replace"},
		"after":["`+b.post(t, `{"task":"echo","delay":"3h"}`)+`"]}`)
	if fmt.Sprint(r.body["after"]) != "["+parent+"]" || r.str("due_at") != r.str("created_at") {
		t.Errorf("with other parents: %s", r.text)
	}
}

func TestUnique_StaysPausedWhenReplaced(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(b *bench, id string){
		"with its task": func(b *bench, _ string) { b.want(t, 201, "PUT", "/v1/pauses/task:echo", `{}`) },
		"by itself":     func(b *bench, id string) { b.want(t, 200, "POST", "/v1/jobs/"+id+"/pause", `{"reason":"x"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.post(t, keyed("replace", ""))
			pause(b, id)
			r := b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","unique":{"key":"k","on_conflict":"replace"}}`)
			if r.str("job_id") != id || r.str("waiting_for") != "pause" || b.row(t, id).DueAt != noon {
				t.Errorf("answered %s", r.text)
			}
		})
	}
}

func TestUnique_IsTakenAfterTheIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, conflict := range []string{"return", "replace"} {
		t.Run(conflict, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			body := keyed(conflict, `,"payload":1`)
			id := b.post(t, keyed("return", ""))
			b.want(t, 200, "POST", "/v1/jobs", body, "Idempotency-Key", "i")
			b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
			r := b.want(t, 200, "POST", "/v1/jobs", body, "Idempotency-Key", "i")
			if r.str("job_id") != id || r.header.Get("Idempotency-Replayed") != "true" ||
				r.str("status") != "CANCELLED" {
				t.Errorf("replayed %v %s", r.header, r.text)
			}
			second := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "j").str("job_id")
			b.want(t, 422, "POST", "/v1/jobs", keyed(conflict, `,"payload":2`), "Idempotency-Key", "j")
			if r := b.want(t, 202, "POST", "/v1/jobs", body, "Idempotency-Key", "j"); r.str("job_id") != second ||
				b.row(t, second).Version != 1 {
				t.Errorf("the replay of its own job: %s", r.text)
			}
		})
	}
	t.Run("a refusal keeps nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.post(t, keyed("return", ""))
		b.want(t, 409, "POST", "/v1/jobs", keyed("reject", ""), "Idempotency-Key", "i")
		b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
		b.want(t, 202, "POST", "/v1/jobs", keyed("reject", ""), "Idempotency-Key", "i")
	})
}

func TestUnique_OfABatchCountsTheHolderAsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	item := func(conflict string, n int) string { return keyed(conflict, fmt.Sprintf(`,"payload":%d`, n)) }
	r := b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[`+strings.Join([]string{item("return", 0),
		item("return", 1), item("reject", 2), item("replace", 3), `{"task":"echo"}`}, ",")+`]}`)
	items := r.items()
	first := items[0]["job"].(map[string]any)["job_id"]
	if r.body["accepted"] != 4.0 || r.body["refused"] != 1.0 ||
		items[1]["job"].(map[string]any)["job_id"] != first || items[3]["job"].(map[string]any)["job_id"] != first ||
		items[2]["problem"].(map[string]any)["code"] != "not_unique" ||
		items[4]["job"].(map[string]any)["job_id"] == first {
		t.Errorf("answered %s", r.text)
	}
	if row := b.row(t, first.(string)); row.Payload != "3" || row.Version != 2 {
		t.Errorf("the job has payload %s at version %d", row.Payload, row.Version)
	}
	if n := b.Meter.Total("jobs_accepted_total"); n != 2 {
		t.Errorf("%v jobs were accepted", n)
	}
	var many []string
	for n := range 60 {
		many = append(many, strings.Replace(item("replace", n), `"key":"k"`, `"key":"many"`, 1))
	}
	items = b.want(t, 200, "POST", "/v1/jobs/batch", `{"jobs":[`+strings.Join(many, ",")+`]}`).items()
	last := items[59]["job"].(map[string]any)["job_id"].(string)
	if row := b.row(t, last); row.Payload != "59" || row.Version != 60 {
		t.Errorf("after many the job has payload %s at version %d", row.Payload, row.Version)
	}
}

func TestUnique_IsTakenByOneOfManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const takers = 20
	answers := make([]reply, takers)
	var g sync.WaitGroup
	for n := range takers {
		g.Go(func() { answers[n] = b.do(t, "POST", "/v1/jobs", keyed([]string{"return", "reject"}[n%2], "")) })
	}
	g.Wait()
	made := ""
	for _, r := range answers {
		if r.status == 202 {
			if made != "" {
				t.Fatal("two jobs were made")
			}
			made = r.str("job_id")
		}
	}
	for _, r := range answers {
		if r.str("job_id") != made || !slices.Contains([]int{200, 202, 409}, r.status) {
			t.Errorf("made %s, and answered %d %s", made, r.status, r.text)
		}
	}
	if n := b.Meter.Total("jobs_accepted_total"); n != 1 {
		t.Errorf("%v jobs were accepted", n)
	}
}

func TestUnique_IsTakenByARedrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead := b.dead(t, keyed("return", ""))
	id := b.post(t, keyed("return", ""))
	r := b.want(t, 409, "POST", "/v1/jobs/"+dead+"/redrive", "")
	if r.str("code") != "not_unique" || r.str("job_id") != id || b.row(t, dead).RedrivenBy != "" {
		t.Errorf("answered %s", r.text)
	}
	items := b.want(t, 200, "POST", "/v1/dead-letters/redrive", `{"job_ids":["`+dead+`"]}`).items()
	if items[0]["problem"].(map[string]any)["code"] != "not_unique" {
		t.Errorf("of many: %v", items)
	}
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
	by := b.want(t, 202, "POST", "/v1/jobs/"+dead+"/redrive", "").str("job_id")
	if r := b.want(t, 200, "POST", "/v1/jobs", keyed("return", "")); r.str("job_id") != by {
		t.Errorf("the new job does not hold the key: %s", r.text)
	}
}

// TestUnique_KeyOutlivesItsHolder reads until when the key of a job is kept: as long as the job may be open.
func TestUnique_KeyOutlivesItsHolder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept := func() time.Time {
		t.Helper()
		i, err := b.World.Table().Get(context.Background(), job.UniqueRef("acme", "k"))
		if err != nil || i == nil {
			t.Fatal(i, err)
		}
		return time.Unix(i.Int(contract.AttrExpiresAt), 0)
	}
	retries := time.Duration(contract.MaxAttempts) * (contract.MaxRetryDelay + contract.MaxTimeoutLong)
	require := func(what string) {
		t.Helper()
		id := b.want(t, 200, "POST", "/v1/jobs", `{"task":"echo","unique":{"key":"k"}}`).str("job_id")
		if due := b.row(t, id).DueAt; kept().Before(due.Add(retries + contract.DeadKept)) {
			t.Errorf("%s: kept until %s, of a job that is due at %s", what, kept(), due)
		}
	}
	id := b.post(t, `{"task":"echo","run_at":"2029-02-28T12:00:00Z","unique":{"key":"k"}}`)
	require("due in two years")
	before := kept()
	b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"run_at":"2027-03-02T00:00:00Z"}`)
	if !kept().Equal(before) {
		t.Error("an earlier time has shortened it")
	}
	for range 4 { // each time as late as it may be
		b.clock.at = b.clock.at.Add(700 * 24 * time.Hour)
		later := b.clock.at.Add(700 * 24 * time.Hour).Format(time.RFC3339)
		b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"run_at":"`+later+`"}`)
		require("postponed to " + later)
	}
}
