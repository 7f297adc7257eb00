package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"punctual/functions/engine/accept"
	"punctual/functions/engine/notify"
	"punctual/functions/stagetest"
	"punctual/integration/emulator/environment"
	"punctual/shared/event"
	kind "punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/job/jobtest"
	"punctual/shared/memory"
	"punctual/shared/operation"
	"punctual/shared/run"
	"punctual/shared/schedule"
	"punctual/shared/webhook"
	"punctual/workers/executor"
)

// everyEvent makes one event of each type that a webhook can ask for, from what brings it about.
func everyEvent() (list []event.Event) {
	now := stagetest.Now()
	open := jobtest.Row(1, now, now)
	for n, s := range []job.Status{job.Succeeded, job.Dead, job.Expired, job.Cancelled, job.Skipped} {
		r := jobtest.Row(n+1, now, now)
		r.Status, r.FinishedAt = s, now
		list = append(list, event.Of(event.Change{New: r})...)
	}
	failed := open
	failed.Attempt, failed.Failures, failed.Waiting = 2, 1, "retry"
	list = append(list, event.Of(event.Change{Old: &open, New: failed})...)
	for n, s := range []run.Status{run.Succeeded, run.Failed, run.Held, run.Cancelled} {
		r := run.Run{Key: run.Key{Tenant: jobtest.Tenant, ID: job.NewID(now, [10]byte{byte(n)})}, CreatedAt: now}
		list = append(list, event.OfRun(r, run.Announcement{Status: s, At: now.UnixMilli(), Sequence: 1}, nil))
	}
	for n, k := range schedule.AllKinds {
		s := stagetest.Schedule("s", "* * * * *")
		list = append(list, event.OfSchedule(s, schedule.Announcement{Kind: k, At: now.UnixMilli(),
			Sequence: int64(n)}))
	}
	o := operation.Operation{Key: operation.Key{Tenant: jobtest.Tenant, ID: job.NewID(now, [10]byte{9})},
		Status: operation.Failed, EndedAt: now}
	o.NoteEnd()
	return append(list, event.OfOperation(o, o.Ends[0]),
		event.OfDisabled(jobtest.Tenant, "other", "", 1, job.Reason{Code: webhook.CodeGone}, now))
}

// request is a request that the endpoint of a webhook has got.
type request struct {
	Body    string            `json:"body"`
	Headers map[string]string `json:"headers"`
}

// verifier reads requests, verifies each by the library of Standard Webhooks, and prints the types of their events. A
// changed body must be refused.
const verifier = `
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
hook = Webhook(sys.argv[1])
for line in sys.stdin:
    request = json.loads(line)
    print(hook.verify(request["body"], request["headers"])["type"])
    try:
        hook.verify(request["body"] + " ", request["headers"])
        sys.exit("a changed body has the same signature")
    except WebhookVerificationError:
        pass
`

// Each type of event is announced twice, delivered once, and verified by the libraries of two languages.
func TestEvents_AreVerifiedByTheLibrariesOfTwoLanguages(t *testing.T) {
	t.Parallel()
	const key, arn = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"arn:aws:secretsmanager:local:000000000000:secret:punctual/punctual/acme/hooks"
	b := stagetest.New(t, memory.Options{})
	b.World.Secrets().Put(arn, key)
	got := endpoint(t, b, arn)
	want := map[string]int{}
	for _, what := range event.Types {
		want["punctual."+string(what)] = 1
	}
	types := map[string]int{}
	goVerifier, err := webhooks.NewWebhook(key)
	b.Must(err)
	var lines bytes.Buffer
	for _, r := range got {
		h := http.Header{}
		for name, value := range r.Headers {
			h.Set(name, value)
		}
		b.Must(goVerifier.Verify([]byte(r.Body), h))
		if goVerifier.Verify([]byte(r.Body+" "), h) == nil {
			t.Error("a changed body has the same signature")
		}
		var e struct{ Type, ID string }
		b.Must(json.Unmarshal([]byte(r.Body), &e))
		if types[e.Type]++; e.ID == "" || h.Get("Webhook-Id") != e.ID {
			t.Errorf("%s was sent as %q", r.Body, h.Get("Webhook-Id"))
		}
		b.Must(json.NewEncoder(&lines).Encode(r))
	}
	if !maps.Equal(types, want) {
		t.Errorf("received %v, want %v", types, want)
	}
	if testing.Short() {
		environment.SkipOrFail(t, "Python is needed; nothing but Go is with -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	python, err := environment.InstallPinned(ctx, environment.Webhooks)
	if err != nil {
		environment.SkipOrFail(t, "the library cannot be installed, which needs PyPI once: "+err.Error())
	}
	command := exec.CommandContext(ctx, python, "-c", verifier, key)
	command.Stdin = &lines
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the Python library: %v\n%s", err, said)
	}
	verified := map[string]int{}
	for what := range strings.FieldsSeq(string(said)) {
		verified[what]++
	}
	if !maps.Equal(verified, want) {
		t.Errorf("the Python library verified %v, want %v", verified, want)
	}
}

// endpoint announces every event, twice, to a webhook that asks for all, runs the deliveries, and returns the requests.
func endpoint(t *testing.T, b *stagetest.Bench, arn string) (got []request) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		got = append(got, request{string(body), headers})
	}))
	defer server.Close()
	hook := webhook.Webhook{Tenant: jobtest.Tenant, Name: "ops", URL: server.URL, SignWith: arn, Enabled: true,
		Events: append(slices.Clone(event.Groups), string(event.WebhookDisabled))}
	_, err := b.Store.UpdateWebhook(b.Context(), hook.Tenant, hook.Name,
		func(*webhook.Webhook) (webhook.Webhook, error) { return hook, nil })
	b.Must(err)
	base := b.ProcessBase()
	base.Announced = true
	n := notify.New(notify.Deps{Base: base, Store: b.Store,
		Accept: accept.New(accept.Deps{Base: base, Jobs: b.Store, Queue: b.World.Queues()})})
	for _, e := range everyEvent() {
		for range 2 {
			b.Must(n.Announce(b.Context(), e))
		}
	}
	found, _, err := b.Store.Deliveries(b.Context(), jobtest.Tenant, "ops", "", 100)
	b.Must(err)
	run := executor.Standard(executor.Options{Secrets: b.World.Secrets(),
		HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})[kind.Webhook]
	for _, d := range found {
		payload, err := b.Store.Payload(b.Context(), b.Row(d.Key))
		b.Must(err)
		_, err = run.Run(b.Context(), executor.Work{Key: d.Key, HandlerKey: d.ID, Attempt: 1, Token: 1,
			Payload: payload})
		b.Must(err)
	}
	return got
}
