package redrive

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/message"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

const (
	collectors = 4  // receives at a time
	receiveMax = 10 // SQS's limit of one receive
)

// collect goes through the dead-letter queue and deletes dead letters whose jobs are redriven or gone. If that fails
// it is only logged: a failed message would end up in the dead-letter queue itself, and the next redrive or purge
// sends another.
func (s *Stage) collect(ctx context.Context, d message.Delivery) error {
	ask, err := message.Decode[message.Collect](d.Body)
	if err != nil {
		return err
	}
	until := s.Clock.Now().Add(contract.LettersCollecting)
	var seen, taken atomic.Int64
	var cut atomic.Bool
	var all errgroup.Group
	for range collectors {
		all.Go(func() error {
			for {
				if !s.Clock.Now().Before(until) {
					cut.Store(true)
					return nil
				}
				got, err := s.Queue.Receive(ctx, contract.DeadLetters, receiveMax, 0, contract.LettersHidden)
				if err != nil || len(got) == 0 {
					return err
				}
				over, err := s.overOf(ctx, got)
				if len(over) > 0 {
					err = errors.Join(err, s.Queue.Delete(ctx, contract.DeadLetters, over...))
				}
				if err != nil {
					return err
				}
				seen.Add(int64(len(got)))
				taken.Add(int64(len(over)))
			}
		})
	}
	err = all.Wait()
	if err == nil && cut.Load() && ask.Round+1 < contract.LettersRounds {
		ask.Round++
		err = s.Queue.Send(ctx, contract.RedriveQueue, message.Outgoing{Body: message.Encode(ask)})
	}
	log := s.Log.With("seen", seen.Load(), "taken", taken.Load(), "round", ask.Round, "cut", cut.Load())
	if err != nil {
		log.WarnContext(ctx, "dead letters of redriven or purged jobs may be left", telemetry.Err, err.Error())
		return nil
	}
	log.InfoContext(ctx, "collected the dead letters")
	return nil
}

// overOf returns the receipts of the dead letters whose jobs were redriven or are gone. One that cannot be read is
// kept for an operator or for newer code, and so is one whose row cannot be read. A request to collect has ended, too:
// code that did not know it yet let it come here, and what it asks for is being done.
func (s *Stage) overOf(ctx context.Context, dead []message.Delivery) (over []string, err error) {
	var keys []job.Key
	var receipts []string
	for _, d := range dead {
		if message.IsCollect(d.Body) {
			over = append(over, d.Receipt)
			continue
		}
		l, err := message.Decode[message.DeadLetter](d.Body)
		if err != nil {
			continue
		}
		if id, err := job.ParseID(l.JobID); err == nil {
			keys, receipts = append(keys, job.Key{Tenant: tenant.ID(l.Tenant), ID: id}), append(receipts, d.Receipt)
		}
	}
	rows, there, err := s.Store.Rows(ctx, keys)
	if err != nil {
		return nil, err
	}
	for n, row := range rows {
		switch {
		case there[n] && (row.Status != job.Dead || row.RedrivenBy != ""):
			over = append(over, receipts[n])
		case !there[n]:
			_, err := s.Store.Row(ctx, keys[n])
			if fault.KindOf(err) == fault.NotFound {
				over = append(over, receipts[n])
			}
		}
	}
	return over, nil
}
