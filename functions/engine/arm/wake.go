package arm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"punctual/shared/clock"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Waker lets dispatch look at parked jobs at a given time.
type Waker struct {
	Queue  message.Sender
	Timers message.Timers
	Clock  clock.Clock
	Log    *slog.Logger
}

// wakeTimeout bounds the sends, because a client waits for the answer.
const wakeTimeout = 5 * time.Second

// Parked lets dispatch look at all parked jobs of a tenant at a given time: by a message, or by a timer if the time
// is beyond a message's delay. A failure does not fail the request, because the sweeper finds the jobs later.
func (w Waker) Parked(ctx context.Context, t tenant.ID, at time.Time) {
	w.Later(ctx, t, at, Unpark(t)...)
}

// Later is Parked for anything that dispatch can be asked for.
func (w Waker) Later(ctx context.Context, t tenant.ID, at time.Time, asks ...message.Dispatch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTimeout)
	defer cancel()
	now := w.Clock.Now().UTC().Truncate(time.Millisecond)
	near := horizon.LaneOf(now, at) == horizon.Now || horizon.LaneOf(now, at) == horizon.Direct
	var out []message.Outgoing
	var failed error
	for _, ask := range asks {
		ask.At = at
		body := message.Encode(ask)
		if near {
			out = append(out, message.Outgoing{Body: body, Delay: horizon.Delay(now, at)})
			continue
		}
		err := w.Timers.Arm(ctx, message.Timer{
			Name: parkingTimer(ask, at), At: at.Add(-contract.TimerLead).Truncate(time.Second), Body: body,
			MaxAge: parkingMaxAge,
		})
		if err != nil {
			failed = err
		}
	}
	if len(out) > 0 {
		failed = w.Queue.Send(ctx, contract.DispatchQueue, out...)
	}
	if failed != nil {
		w.Log.WarnContext(ctx, "parked jobs wait for the sweeper: what wakes them was not sent", telemetry.Tenant, t,
			telemetry.Err, failed)
	}
}

// parkingMaxAge is how late such a timer may still fire. After that the sweeper has done its work.
const parkingMaxAge = time.Hour

// parkingTimer is the name of the timer that asks for something; the same request and time give the same name.
func parkingTimer(ask message.Dispatch, at time.Time) string {
	sum := sha256.Sum256([]byte(ask.Slice + " " + at.UTC().Format(time.RFC3339Nano)))
	return "p-" + hex.EncodeToString(sum[:16])
}
