package system_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/workers/system"
	"punctual/workers/worker"
)

// Payloads, results and errors may contain any character; SQS accepts fewer.
//
//proof:of F01
func TestSystem_SettlesJobsWithTextThatQueuesRefuse(t *testing.T) {
	t.Parallel()
	const odd = "x\uffffy\ufffe\x00 <&>"
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *system.Options) {
			worker.Register(o.Registry, "fails", func(context.Context, worker.Job[string]) (string, error) {
				return "", errors.New(odd + "\xed\xa0\x80")
			})
		})
		defer b.stop()
		b.Want(201, "PUT", "/tasks/fails", object{"executor": "go"})
		var good, dead []string
		for range 20 {
			good = append(good, b.Post(object{"task": "echo", "payload": object{"a": odd}}))
			dead = append(dead, b.Post(object{"task": "fails", "payload": "p", "retry": object{"max_attempts": 1}}))
		}
		time.Sleep(30 * time.Second)
		for _, id := range good {
			if v := b.WantStatus(id, "SUCCEEDED"); v["result"].(object)["a"] != odd {
				t.Fatalf("its result came out as %q", v["result"])
			}
		}
		for _, id := range dead {
			b.WantStatus(id, string(job.Dead))
		}
		time.Sleep(10 * time.Minute)
		buried := map[string]bool{}
		for {
			got, err := b.World.Queues().Receive(t.Context(), contract.DeadLetters, 10, 0, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 {
				break
			}
			for _, d := range got {
				l, err := message.Decode[message.DeadLetter](d.Body)
				if err != nil {
					t.Fatal(err)
				}
				buried[l.JobID] = true
			}
		}
		if len(buried) != len(dead) {
			t.Errorf("%d of %d dead letters reached their queue", len(buried), len(dead))
		}
	})
}
