package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
	"punctual/shared/memory"
	"punctual/shared/message"
)

func TestWorld_ConnectsItsTwins(t *testing.T) {
	t.Parallel()

	t.Run("a timer fires within its minute into the dispatch queue, where a waiting receive wakes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := memory.New(memory.Options{})
			defer w.Close()
			at := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
			timer := message.Timer{Name: "j-1", At: at, Body: "ring", MaxAge: time.Hour}
			if err := w.Timers().Arm(t.Context(), timer); err != nil {
				t.Fatal(err)
			}
			var got []message.Delivery
			for len(got) == 0 && time.Since(at) < time.Minute {
				var err error
				if got, err = w.Queues().Receive(t.Context(), contract.DispatchQueue, 10, 20*time.Second,
					0); err != nil {
					t.Fatal(err)
				}
			}
			if late := time.Since(at); len(got) != 1 || got[0].Body != "ring" || late < 0 || late >= time.Minute {
				t.Fatalf("received %v, %s after the minute began", got, late)
			}
			if armed := w.Timers().Armed(); len(armed) != 0 {
				t.Fatalf("still armed: %v", armed)
			}
		})
	})

	t.Run("a put of a small row with an entry in the due index costs two write units", func(t *testing.T) {
		t.Parallel()
		w := memory.New(memory.Options{})
		defer w.Close()
		put := item.Write{Ref: item.Ref{Table: contract.Jobs, PK: "acme#1", SK: "j"}, Name: "put", Put: item.Item{
			"pk": "acme#1", "job_id": "j", contract.AttrWakeSlice: "2027-03-28T00:05#1", contract.AttrWakeAt: int64(1),
		}}
		if _, err := w.Table().Write(t.Context(), put); err != nil {
			t.Fatal(err)
		}
		page, err := w.Table().Query(t.Context(), item.Query{Table: contract.Jobs, Index: contract.DueIndex,
			PK: "2027-03-28T00:05#1"})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("the due index shows %v, %v", page, err)
		}
		if u := w.Counts().Total(); u.Write != 1 || u.IndexWrite != 1 || u.Read != 0.5 {
			t.Fatalf("counted %+v", u)
		}
	})
}
