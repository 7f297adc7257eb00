package batch

import (
	"reflect"
	"testing"
	"time"

	"punctual/shared/item"
	"punctual/shared/message"
)

func TestPump_EventsReadBackUnchanged(t *testing.T) {
	t.Parallel()
	d := message.Delivery{ID: "m", Receipt: "r", Body: "b", Group: "acme", Receives: 2,
		SentAt: time.UnixMilli(1800000000123).UTC(), Source: "arn:q"}
	if got := DeliveryOf(SQSEventOf(d).Records[0]); got != d {
		t.Errorf("read %+v", got)
	}
	near := item.Item{"pk": "acme#1", "job_id": "J", "near": "1", "n": int64(7)}
	was := item.Item{"pk": "acme#1", "job_id": "J"}
	ev := StreamEventOf(item.Change{Seq: "1", New: was}, item.Change{Seq: "2", Old: was},
		item.Change{Seq: "3", Old: was, New: near})
	if len(ev.Records) != 1 {
		t.Fatalf("%d records passed the filter", len(ev.Records))
	}
	if got := ChangeOf(ev.Records[0]); !reflect.DeepEqual(got, item.Change{Seq: "3", Old: was, New: near}) {
		t.Errorf("read %+v", got)
	}
}
