package job

import (
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/executor"
	"punctual/shared/horizon"
	"punctual/shared/tenant"
)

// deliveryRetry tries a delivery for 24 h: after 5 s, 10 s and so on, then each hour. Of a failed one, its last attempt
// ends about a day after its first.
var deliveryRetry = RetryPolicy{MaxAttempts: 36, InitialDelay: 5 * time.Second, Factor: 2, MaxDelay: time.Hour,
	Jitter: 0.1}

// deliveryTask is the task of deliveries. Only Punctual makes jobs of it.
var deliveryTask = Task{
	Name: executor.Webhook, Executor: executor.Webhook, Pool: contract.DefaultPool, Priority: Normal,
	Timeout: 30 * time.Second, Retry: deliveryRetry, Version: 1, BuiltIn: true,
}

// Delivery is the job that delivers an event to a webhook, due now, without its payload. send says whether the writer
// must send its firing.
func Delivery(k Key, webhook string, shards int, now time.Time) (r Row, send bool) {
	r = Row{Key: k, Status: Scheduled, Version: 1, Attempt: 1, CreatedAt: now, DueAt: now,
		Settings: deliveryTask.Settings(), Webhook: webhook}
	r.Shard = horizon.ShardOf(string(k.ID), shards)
	return r, Route(&r, now)
}

// DeliveryGroups are the keys in the group index below which the deliveries to a webhook are listed. They are several:
// one would bear a thousand writes a second, and hold up the writes of its jobs beyond that.
func DeliveryGroups(t tenant.ID, webhook string) []string {
	keys := make([]string, contract.DeliveryShards)
	for n := range keys {
		keys[n] = deliveryGroupKey(t, webhook, n)
	}
	return keys
}

// deliveryGroupKey is that of one of them. No schedule's name contains a #.
func deliveryGroupKey(t tenant.ID, webhook string, n int) string {
	return GroupKey(t, "webhook#"+webhook+"#"+strconv.Itoa(n))
}

// DeliverySort is where a delivery is in its group: at its creation, and then by its id.
func DeliverySort(at time.Time, id ID) string { return GroupSort(at) + "#" + string(id) }

func (r Row) deliveryGroup() (key, sort string) {
	n := horizon.ShardOf(string(r.ID), contract.DeliveryShards)
	return deliveryGroupKey(r.Tenant, r.Webhook, n), DeliverySort(r.CreatedAt, r.ID)
}
