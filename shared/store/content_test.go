package store_test

import (
	"context"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
)

func TestStore_KeepsAndCopiesAllThatAJobHolds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	labels := job.Labels{Tags: `{"team":"billing"}`}
	for name, c := range map[string]struct {
		payload, in string
		labels      job.Labels
	}{
		"nothing":                  {"", job.InRow, job.Labels{}},
		"a payload in the row":     {`"a"`, job.InRow, labels},
		"a payload in an item":     {`"` + strings.Repeat("a", contract.MaxInlinePayload) + `"`, job.InItem, labels},
		"a payload in an object":   {`"` + strings.Repeat("a", contract.MaxItem) + `"`, job.InBlob, labels},
		"a payload without labels": {`"` + strings.Repeat("a", contract.MaxInlinePayload) + `"`, job.InItem, job.Labels{}},
	} {
		t.Run("keeps and copies "+name, func(t *testing.T) {
			t.Parallel()
			_, s := world(t, memory.Options{})
			held := job.Contents{Labels: c.labels, Literals: &job.Literals{Pointers: []string{"/payload"}, By: "me"}}
			if c.payload != "" {
				held.Payload = []byte(c.payload)
			}
			from := accepted(t, s, "acme", 1, func(r *job.Row) { r.Hold(held) })
			if from.PayloadIn != c.in {
				t.Fatalf("the payload is in %q", from.PayloadIn)
			}
			for range 2 {
				if err := s.KeepContents(ctx, from, held); err != nil {
					t.Fatal(err)
				}
			}
			to := job.RedriveOf(from, at)
			if err := s.CopyContents(ctx, from, to); err != nil {
				t.Fatal(err)
			}
			if err := s.ForgetContents(ctx, from); err != nil {
				t.Fatal(err)
			}
			payload, err := s.Payload(ctx, to)
			if err != nil || string(payload) != c.payload {
				t.Errorf("payload of %d bytes, %v", len(payload), err)
			}
			if got, err := s.Labels(ctx, to); err != nil || got != c.labels {
				t.Errorf("labels %v, %v", got, err)
			}
			if _, err := s.Content(ctx, to.Key, job.LiteralsContent); fault.KindOf(err) != fault.NotFound {
				t.Errorf("the literals were copied: %v", err)
			}
			for _, content := range []string{job.TagsContent, job.LiteralsContent, job.PayloadContent(from.PayloadVer)} {
				if _, err := s.Content(ctx, from.Key, content); fault.KindOf(err) != fault.NotFound {
					t.Errorf("%s of the forgotten job: %v", content, err)
				}
			}
			if _, err := s.Payload(ctx, from); from.PayloadIn != job.InRow && fault.KindOf(err) != fault.NotFound {
				t.Errorf("payload of the forgotten job: %v", err)
			}
		})
	}
}

func TestStore_LabelsThatAreTakenAwayAreGone(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	r := accepted(t, s, "acme", 1, func(r *job.Row) { r.Hold(job.Contents{Labels: job.Labels{Tags: `{"a":"b"}`}}) })
	for _, l := range []job.Labels{{Tags: `{"a":"b"}`}, {}} {
		if err := s.Put(ctx, r.PutLabels(l)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Labels(ctx, r); fault.KindOf(err) != fault.NotFound {
		t.Errorf("labels that the row announces: %v", err)
	}
	r.Labelled = job.Labels{}.Labelled()
	if l, err := s.Labels(ctx, r); err != nil || l != (job.Labels{}) {
		t.Errorf("labels of a row without: %v, %v", l, err)
	}
}
