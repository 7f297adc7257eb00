package spec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"punctual/functions/api/field"
	"punctual/functions/api/rest"
	"punctual/functions/engine/arm"
	"punctual/functions/engine/pause"
	"punctual/shared/contract"
	"punctual/shared/horizon"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Fields of a pause.
var (
	pauseReason = Reason.About("Reason for the pause.")
	pauseUntil  = Instant("until", "Time at which the pause ends by itself; default: none.")
	pauseMissed = Missed.About("Treatment of the schedules' times under the pause: drop, last or all; default: the " +
		"catch-up policy of each schedule. Jobs without a schedule always run.")

	PauseRequest = field.NewObject("PauseRequest", "Pause of everything, of one task or of one schedule.", pauseReason,
		pauseUntil, pauseMissed)
)

// EffectiveAt returns from when a pause that was just written holds: from the time stored with it, unless the write
// came so long after that time was chosen that a worker may still act on what it read before the write.
func (s *Core) EffectiveAt(stored time.Time) time.Time {
	if read := s.Now().Add(pause.FactAge); read.After(stored) {
		return read
	}
	return stored
}

// Passed reports whether a pause has ended by its until.
func Passed(p job.Pause, now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// ReadPause reads the body of a pause; without a body it is a pause without an end.
func ReadPause(ctx context.Context, now time.Time) (p job.Pause, err error) {
	err = OptionalBody(ctx, PauseRequest, func(r *rest.Reader, f rest.Fields) {
		if pauseReason.Into(r, f, &p.Reason) {
			r.NoSecrets(f[pauseReason.Name()], nil)
		}
		if v, ok := f[pauseUntil.Name()]; ok {
			if t, ok := r.Ahead(v, now); ok {
				p.Until = t
				if !t.After(now) {
					r.Violation(v.Pointer, rest.CodeInThePast, "a time ahead", "a pause cannot end before it begins")
				}
			}
		}
		pauseMissed.Into(r, f, &p.Missed)
	})
	return p, err
}

// WakeParked lets dispatch look at all parked jobs of a tenant at a given time: by a message, or by a timer if the time
// is beyond a message's delay. A failure does not fail the request, because the sweeper finds the jobs later.
func (s *Core) WakeParked(ctx context.Context, t tenant.ID, at time.Time) {
	s.WakeLater(ctx, t, at, arm.Unpark(t)...)
}

// WakeLater is WakeParked for anything that dispatch can be asked for.
func (s *Core) WakeLater(ctx context.Context, t tenant.ID, at time.Time, asks ...message.Dispatch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SendTimeout)
	defer cancel()
	now := s.Now()
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
		err := s.Timers.Arm(ctx, message.Timer{
			Name: parkingTimer(ask, at), At: at.Add(-contract.TimerLead).Truncate(time.Second), Body: body,
			MaxAge: parkingMaxAge,
		})
		if err != nil {
			failed = err
		}
	}
	if len(out) > 0 {
		failed = s.Queues.Send(ctx, contract.DispatchQueue, out...)
	}
	if failed != nil {
		s.Log.WarnContext(ctx, "parked jobs wait for the sweeper: what wakes them was not sent", telemetry.Tenant, t,
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

// pausesFor is how long the pauses of a tenant are cached. The view of an accepted job shows whether a pause holds it,
// and reading the pauses for every job would put all reads on one partition.
const pausesFor = time.Second

// maxPausesSeen is how many tenants are cached.
const maxPausesSeen = 1000

// Held reports whether a pause seems to hold a job that is about to be accepted. It is only for the view.
func (s *Core) Held(ctx context.Context, r job.Row, now time.Time) bool {
	if !job.StartsSoon(r, now) {
		return false
	}
	pauses, err := s.Pauses.Get(ctx, r.Tenant, func(ctx context.Context) (job.Pauses, error) {
		return s.Store.Pauses(ctx, r.Tenant)
	})
	if err != nil {
		return false
	}
	_, held := pauses.Hold(r.Task, now)
	return held
}
