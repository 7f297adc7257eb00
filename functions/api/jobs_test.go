package api_test

import (
	"testing"

	"punctual/shared/contract"
	"punctual/shared/message"
)

func TestAJobDueNowIsAcceptedAndFiredByItsWriter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.want(t, 202, "POST", "/v1/jobs", `{"task":"echo","payload":{"hello":"world"}}`)
	if got := r.header.Get("Location"); got != "/v1/jobs/"+r.str("job_id") {
		t.Errorf("Location is %q", got)
	}
	if r.header.Get("ETag") != `"1"` || r.str("status") != "QUEUED" || r.str("waiting_for") != "worker" || r.str("due_at") != "2027-03-01T12:00:00.000Z" {
		t.Errorf("the view is %s with ETag %s", r.text, r.header.Get("ETag"))
	}
	sent := b.sent(t, contract.FiringQueue("short", "normal"))
	if len(sent) != 1 || sent[0].Group != "acme" {
		t.Fatalf("firings: %+v", sent)
	}
	f, err := message.Decode[message.Firing](sent[0].Body)
	if err != nil || f.JobID != r.str("job_id") || f.Version != 1 || f.Attempt != 1 || !f.DueAt.Equal(noon) {
		t.Errorf("the firing is %+v, %v", f, err)
	}
	g := b.want(t, 200, "GET", "/v1/jobs/"+r.str("job_id"), "")
	if g.str("job_id") != r.str("job_id") || g.header.Get("ETag") != `"1"` {
		t.Errorf("GET answered %s", g.text)
	}
}

func TestALaterJobIsLeftToTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{
		`{"task":"echo","delay":"901s"}`, `{"task":"echo","delay":"6h"}`, `{"task":"echo","run_at":"2027-03-01T13:00:05+01:00"}`,
	} {
		r := b.want(t, 202, "POST", "/v1/jobs", body)
		if r.str("status") != "SCHEDULED" || r.str("waiting_for") != "due" {
			t.Errorf("%s: the view is %s", body, r.text)
		}
	}
	if sent := b.sent(t, contract.FiringQueue("short", "normal")); len(sent) != 0 {
		t.Errorf("%d firings were sent by the writer of jobs that are due later", len(sent))
	}
}
