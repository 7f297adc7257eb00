package job

import (
	"strings"

	"punctual/shared/tenant"
)

// heartbeatPrefix begins the name of each schedule of heartbeats.
const heartbeatPrefix = "heartbeat-"

// HeartbeatName returns the name of the schedule whose jobs are the heartbeats of one queue.
func HeartbeatName(pool string, priority Priority) string {
	return heartbeatPrefix + pool + "-" + string(priority)
}

// Heartbeat reports whether the job is a heartbeat: an empty job of the deployment itself.
func (r Row) Heartbeat() bool {
	return r.Tenant == tenant.System && strings.HasPrefix(r.ScheduleID, heartbeatPrefix)
}
