package sim

import (
	"os"
	"strings"
)

// awaited names what the product does not hold yet, each with what must hold first: stories of
// Troubles by their names, and Hazards by theirs. Taking an entry out switches its story or dare
// on; SIM_AWAITED=1 switches all on for one run, and SIM_AWAITED=part of a name some.
var awaited = map[string]string{
	"OddText":     unsendable,
	"LastSecond":  claimAtDue,
	"ShortPauses": pauseWord,

	"text that SQS refuses":                           unsendable,
	"a report that its queue refuses for two minutes": unsendable,

	"the table is away for twelve seconds during a long attempt":               backOff,
	"workers do not reach the table for fifteen seconds during a long attempt": backOff,
	"another tenant's partition is throttled for three minutes":                backOff,
	"one claim meets conflicts for a minute":                                   backOff,
	"who holds a slot cannot be read for three minutes":                        backOff,

	"one at a time, five minutes each":           copies,
	"no worker knows the task for fifty minutes": copies,

	"cancelled in the last second":                  claimAtDue,
	"start_within passes while the payload is read": claimAtDue,
	"expire_after passes while the payload is read": claimAtDue,

	"a pause of one task cannot be read":                         unreadable,
	"a tenant's pause of everything cannot be read":              unreadable,
	"a job cannot be read until twenty minutes after it was due": unreadable,
	"a schedule cannot be read for twenty minutes":               unreadable,

	"word of a running attempt comes between a retry's read and write":  promised,
	"word of a running attempt comes between a snooze's read and write": promised,
	"a worker asks again for the claim that it could not let go":        leaseFrom,

	"its workers die of it, and it is not to be run again": workerLost,
	"its workers die of it, and each time is an attempt":   workerLost,
	"its workers die of it, and each start is told":        workerLost,

	"of four jobs of a schedule that end within a second every other fails": countsFresh,
	"who is in line starts when the API cancels whom it waits for":          toldOfCancel,
	"the one that waits starts when the API cancels whom it waits for":      toldOfCancel,
	"rows past their time that the store has not removed":                   expired,

	"an every-second schedule is paused for seven seconds, drop": pauseWord,
	"an every-second schedule is paused for seven seconds, last": pauseWord,
	"an every-second schedule is paused for seven seconds, all":  dueLateness,
}

// What several wait for.
const (
	expired      = "readers take a row past its expires_at for gone"
	dueLateness  = pauseWord + "; start_lateness_ms of a schedule's job counts from its due time"
	leaseFrom    = "a lease counts from before the claim that gave it"
	countsFresh  = "a success ends a row of failures although the schedule was read before"
	promised     = "a retry and a snooze set the status that they promise, whatever they read"
	unsendable   = "what SQS refuses is made sendable before the outcome is written, and no note is kept for ever"
	backOff      = "a worker backs off from the key, the queue or the store that failed, and no further"
	copies       = "messages that are hidden count as depth, and the sweeper postpones"
	claimAtDue   = "the claim and the windows are looked at once more at due"
	unreadable   = "only the item that cannot be read is set aside, and comes back"
	workerLost   = "retry has on_worker_lost, and each start is an entry of the attempts"
	toldOfCancel = "whoever makes a job final tells its schedule"
	pauseWord    = "what fell due under a pause is decided by the pause's word, to the second"
)

// switched says that a story or a dare is on.
func switched(name string) bool {
	some := os.Getenv("SIM_AWAITED")
	return awaited[name] == "" || some == "1" || some != "" && strings.Contains(name, some)
}

func hazards() Hazards {
	return Hazards{
		OddText: switched("OddText"), Outages: switched("Outages"), LastSecond: switched("LastSecond"),
		ShortPauses: switched("ShortPauses"),
	}
}
