package system_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/message"
	"punctual/shared/tenant"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// canary is a text that must be in no log, whatever request it is sent in. It does not look like a secret, so it is not
// hidden because of its form.
const canary = "canary-Zm9vYmFy-7391"

// bodies are requests with the canary in each field that may have a tenant's own text, well-formed and not.
func bodies() []string {
	quoted := `"` + canary + `"`
	return []string{
		`{"task":"echo","payload":{"card":` + quoted + `}}`,
		`{"task":"echo","payload":{"fail":9,"card":` + quoted + `},"retry":{"max_attempts":1}}`,
		`{"task":"echo","payload":` + quoted + `,"delay":"20m"}`,
		`{"task":"leaky","payload":` + quoted + `,"retry":{"max_attempts":2}}`,
		`{"task":"panics","payload":` + quoted + `,"retry":{"max_attempts":2}}`,
		`{"task":"strict","payload":{"amount":` + quoted + `}}`,
		`{"task":"nobody","payload":` + quoted + `}`,
		`{"task":"http","payload":{"url":"http://127.0.0.1:1/","body":` + quoted + `,"headers":{"X":` + quoted +
			`}},"retry":{"max_attempts":1}}`,
		`{"task":"http","payload":{"url":"http://127.0.0.1:1/` + canary + `?t=` + canary +
			`"},"retry":{"max_attempts":1}}`,
		`{"task":"echo","payload":{"password":` + quoted + `}}`,
		`{"task":"echo","metadata":{"ticket":` + quoted + `},"tags":{"k":` + quoted + `}}`,
		`{"task":"echo","delay":` + quoted + `}`, `{"task":` + quoted + `}`, `{` + quoted + `:1}`,
		`[` + quoted + `]`, quoted, canary, `{"task":"echo","payload":` + quoted,
		`{"jobs":[{"task":"echo","payload":` + quoted + `},{"task":"nobody","payload":` + quoted + `}]}`,
		`{"job":{"task":"echo","payload":` + quoted + `},"calendar":{"cron":"* * * * *"}}`,
		`{"executor":"go","payload_schema":{"type":` + quoted + `}}`,
		`{"nodes":[{"name":"a","task":"echo","payload":` + quoted + `}]}`,
		`{"reason":` + quoted + `}`, `{"filter":{"task":` + quoted + `}}`, `{"job_ids":[` + quoted + `]}`,
		`{"payload":` + quoted + `}`, `{"input":` + quoted + `}`,
	}
}

var canaryFunctions = []string{
	"POST /jobs", "POST /jobs/batch", "POST /jobs/00000000000000000000000000/cancel",
	"PATCH /jobs/00000000000000000000000000", "PUT /tasks/t", "PUT /schedules/s", "PATCH /schedules/s",
	"POST /schedules/preview", "POST /schedules/s/pause", "PUT /pauses/task:x", "PUT /exclusions/x", "PUT /dags/d",
	"POST /dags/d/runs", "POST /dags/check", "POST /dead-letters/redrive", "POST /dead-letters/purge", "GET /jobs",
}

// raw sends a request whatever its body is, and returns its status; headers come in pairs.
func raw(t *testing.T, b *bench, method, path, body string, header ...string) int {
	t.Helper()
	r, err := http.NewRequest(method, b.Base+"/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := b.API.Send(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// The canary is sent to the API and to every queue, while nothing fails and while much fails.
func TestSystem_LogsNoBodyNoPayloadAndNoToken(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]uint64{"where all goes well": 0, "where each twelfth call fails": 12} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var leaked, panicked atomic.Int64 // how often the handlers ran
				var registry *worker.Registry
				b := setup(t, func(o *system.Options) {
					registry = o.Registry
					worker.Register(o.Registry, "leaky", func(_ context.Context, j worker.Job[string]) (string, error) {
						leaked.Add(1)
						return "", errors.New("no such card: " + j.Payload)
					})
					worker.Register(o.Registry, "panics",
						func(_ context.Context, j worker.Job[string]) (string, error) {
							panicked.Add(1)
							panic("no such card: " + j.Payload)
						})
					worker.Register(o.Registry, "strict",
						func(context.Context, worker.Job[struct{ Amount int }]) (string, error) {
							return "", nil
						})
				})
				defer b.stop()
				if err := b.sys.DefineHandlers(t.Context(), tenant.Local, registry); err != nil {
					t.Fatal(err)
				}
				var calls atomic.Uint64
				if fails > 0 {
					b.World.SetFaults(func(c memory.Call) memory.Fault {
						h := fnv.New64a()
						fmt.Fprint(h, c.Op, c.N)
						if n := calls.Add(1); h.Sum64()%fails == 0 {
							return memory.Fault{Fail: []fault.Kind{fault.Unavailable, fault.Throttled}[n%2]}
						}
						return memory.Fault{}
					})
				}
				for _, function := range canaryFunctions {
					method, path, _ := strings.Cut(function, " ")
					for n, body := range bodies() {
						raw(t, b, method, path, body, "Authorization", "Bearer "+canary, "Idempotency-Key",
							fmt.Sprint(canary, function, n), "X-Request-Id", "r1", "Cookie", canary)
						raw(t, b, method, path+"?cursor="+canary+"&tag="+canary, body)
					}
				}
				for _, task := range []string{"leaky", "panics"} { // all of those above may have failed
					body := `{"task":"` + task + `","payload":"` + canary + `","retry":{"max_attempts":2}}`
					for tries := 0; raw(t, b, http.MethodPost, "/jobs", body) != http.StatusAccepted; tries++ {
						if tries == 50 {
							t.Fatal("no job is accepted")
						}
					}
				}
				// Messages that cannot be read.
				queues := append(contract.FiringQueues(), contract.DispatchQueue, contract.ReportQueue,
					contract.RedriveQueue)
				for _, q := range queues {
					for _, text := range []string{canary, `"` + canary + `"`,
						`{"v":1,"tenant":"` + canary + `","job_id":1}`, `{"v":9,"payload":"` + canary + `"}`,
						`{"v":1,"tenant":"local","job_id":"` + canary + `","version":1,` +
							`"attempt":1,"kind":"ended","outcome":{"result":"` + canary +
							`"},"dead_at":"2027-01-01T00:00:00Z"}`} {
						_ = b.World.Queues().Send(t.Context(), q, message.Outgoing{Body: text})
					}
				}
				for n, attr := range []string{"payload", "schema_v", "retry", "due_at"} {
					key := job.Key{Tenant: tenant.Local, ID: job.NewID(time.Now(), [10]byte{byte(n)})}
					i := item.Item{contract.AttrPK: key.Ref().PK, contract.AttrJobID: key.Ref().SK,
						contract.AttrNear: "1", "payload": canary, attr: canary}
					_, _ = b.World.Table().Write(t.Context(), item.Write{Ref: key.Ref(), Name: "test.spoilt", Put: i})
				}
				time.Sleep(40 * time.Minute)
				b.World.SetFaults(nil)
				time.Sleep(20 * time.Minute)
				b.stop()
				if leaked.Load() == 0 || panicked.Load() == 0 {
					t.Errorf("the handlers ran %d and %d times: the test is about nothing",
						leaked.Load(), panicked.Load())
				}
				log := b.log.String()
				for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
					for line := range strings.Lines(log) {
						if strings.Contains(line, form) {
							t.Errorf("logged: %.600s", line)
						}
					}
				}
				for _, stage := range []string{"api", "stream", "worker", "status"} {
					if (fails > 0 || stage != "api") && !strings.Contains(log, `"stage":"`+stage+`"`) {
						t.Errorf("%s logged nothing: the test reads the wrong data", stage)
					}
				}
			})
		})
	}
}
