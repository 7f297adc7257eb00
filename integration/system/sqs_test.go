package system_test

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/functions/stagetest"
	"punctual/shared/fault"
	"punctual/shared/memory"
)

func TestSQSJob_SendsItsMessageToAQueueOfItsTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		defer b.stop()
		b.World.TenantQueues().Put("orders.fifo", "local")
		b.World.TenantQueues().Put("theirs", "zeta")
		b.Want(201, "PUT", "/tasks/ship", object{"executor": "sqs"})
		b.FaultFirst(1, stagetest.Every(memory.TenantQueueSend), memory.Fault{Fail: fault.Throttled})
		id := b.Post(object{"task": "ship", "payload": object{"queue": "orders.fifo", "message": object{"n": 1}}})
		theirs := b.Post(object{"task": "ship", "payload": object{"queue": "theirs", "message": "m"}})
		v := b.Await(id, "SUCCEEDED", time.Minute)
		sent := b.World.TenantQueues().Sent("orders.fifo")
		if len(sent) != 1 || sent[0].Body != `{"n":1}` || sent[0].Group != "ship" || sent[0].Deduplication != id+"-2" {
			t.Errorf("the queue holds %+v", sent)
		}
		if result, _ := v["result"].(map[string]any); result["message_id"] == nil || v["attempt"] != 2.0 {
			t.Errorf("after a throttled attempt the job is %v", v)
		}
		v = b.Await(theirs, "DEAD", time.Minute)
		reason, _ := v["status_reason"].(map[string]any)
		if code, _ := reason["code"].(string); code != "forbidden_queue" || v["attempt"] != 1.0 {
			t.Errorf("a job for another tenant's queue is %v", v)
		}
	})
}
