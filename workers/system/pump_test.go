package system

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/clock"
	"punctual/shared/fault"
	"punctual/shared/item"
	"punctual/shared/job/jobtest"
	"punctual/shared/telemetry"
)

// records is a stream of a few records, which can be read from any of them.
type records []item.Change

func (s records) Stream(ctx context.Context, after string, _ int, wait time.Duration) ([]item.Change, error) {
	from := 1 + slices.IndexFunc(s, func(c item.Change) bool { return c.Seq == after })
	if from == len(s) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		return nil, ctx.Err()
	}
	return s[from:], nil
}

// A reader that fails at a record holds up those after it, and takes no record from them.
func TestChanges_ShowEveryReaderEveryRecord(t *testing.T) {
	t.Parallel()
	var stream records
	for n := range 6 {
		stream = append(stream, item.Change{Seq: strconv.Itoa(n + 1),
			New: jobtest.Row(n, time.Now().Add(time.Minute), time.Now()).Item()})
	}
	unavailable := fault.New(fault.Unavailable, errors.New("busy"), "writing")
	for refused := range 7 { // by the first reader, and then one further by the second; 0: by none
		synctest.Test(t, func(t *testing.T) {
			failed := map[string]bool{}
			failsOnce := func(seq string, at int) bool {
				if seq != strconv.Itoa(at) || failed[seq+"/"+strconv.Itoa(at)] {
					return false
				}
				failed[seq+"/"+strconv.Itoa(at)] = true
				return true
			}
			var second, third []string
			p := pump{stream: stream, clock: clock.System{}, log: telemetry.Silent()}
			run := p.changes(func(_ context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
				var resp events.DynamoDBEventResponse
				for _, r := range ev.Records {
					if failsOnce(r.Change.SequenceNumber, refused) {
						resp.BatchItemFailures = append(resp.BatchItemFailures,
							events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber})
					}
				}
				return resp, nil
			}, func(_ context.Context, changes []item.Change) []error {
				errs := make([]error, len(changes))
				for n, c := range changes {
					if failsOnce(c.Seq, refused+1) {
						errs[n] = unavailable
						break
					}
					second = append(second, c.Seq)
				}
				return errs
			}, func(_ context.Context, changes []item.Change) []error {
				for _, c := range changes {
					third = append(third, c.Seq)
				}
				return make([]error, len(changes))
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			run(ctx)
			if got := strings.Join(third, ""); got != "123456" {
				t.Errorf("refused %d: the last reader was shown %s", refused, got)
			}
			slices.Sort(second)
			if got := strings.Join(slices.Compact(second), ""); got != "123456" {
				t.Errorf("refused %d: the second reader took %s", refused, got)
			}
		})
	}
}
