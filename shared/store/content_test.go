package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/job"
	"punctual/shared/memory"
	"punctual/shared/store"
)

func TestStore_KeepsAndCopiesAllThatAJobHolds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	labels := job.Labels{Tags: `{"team":"billing"}`, Metadata: `{"ticket":7}`}
	for name, c := range map[string]struct {
		payload, in string
		labels      job.Labels
	}{
		"nothing":                {"", job.InRow, job.Labels{}},
		"a payload in the row":   {`"a"`, job.InRow, labels},
		"tags":                   {"", job.InRow, job.Labels{Tags: `{"a":"b"}`}},
		"metadata":               {"", job.InRow, job.Labels{Metadata: `{"a":1}`}},
		"a payload in an item":   {`"` + strings.Repeat("a", contract.MaxInlinePayload) + `"`, job.InItem, labels},
		"a payload in an object": {`"` + strings.Repeat("a", contract.MaxItem) + `"`, job.InBlob, labels},
		"a payload without labels": {`"` + strings.Repeat("a", contract.MaxInlinePayload) + `"`, job.InItem,
			job.Labels{}},
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
			copied, err := s.ContentsOf(ctx, from)
			if err != nil {
				t.Fatal(err)
			}
			to := job.RedriveOf(from, at)
			to.Hold(copied)
			if err := s.KeepContents(ctx, to, copied); err != nil {
				t.Fatal(err)
			}
			if err := s.ForgetContents(ctx, from); err != nil {
				t.Fatal(err)
			}
			payload, err := s.Payload(ctx, to)
			if err != nil || string(payload) != c.payload {
				t.Errorf("payload of %d bytes, %v", len(payload), err)
			}
			if got, err := s.LabelsOf(ctx, to, from); err != nil || got[0] != c.labels || got[1] != (job.Labels{}) {
				t.Errorf("labels %v, %v", got, err)
			}
			if _, err := s.Content(ctx, to.Key, job.LiteralsContent); fault.KindOf(err) != fault.NotFound {
				t.Errorf("the literals were copied: %v", err)
			}
			for _, content := range []string{job.TagsContent, job.LiteralsContent,
				job.PayloadContent(from.PayloadVer)} {
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

func TestStore_DoesNotCopyAJobWhoseLabelsAreGone(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	r := accepted(t, s, "acme", 1, func(r *job.Row) { r.Hold(job.Contents{Labels: job.Labels{Tags: `{"a":"b"}`}}) })
	for _, l := range []job.Labels{{Tags: `{"a":"b"}`}, {}} {
		if err := s.Put(ctx, r.PutLabels(l)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ContentsOf(ctx, r); fault.KindOf(err) != fault.NotFound {
		t.Errorf("copying: %v", err)
	}
	if l, err := s.LabelsOf(ctx, r); err != nil || l[0] != (job.Labels{}) {
		t.Errorf("labels %v, %v", l, err)
	}
}

func TestStore_ReadsTheLabelsOfAsManyRowsAsThereAre(t *testing.T) {
	t.Parallel()
	_, s := world(t, memory.Options{})
	ctx := context.Background()
	var rows []job.Row
	for n := range 2*store.ReadAtOnce + 2 {
		r := accepted(t, s, "acme", n)
		if n%2 == 0 {
			held := job.Contents{Labels: job.Labels{Tags: fmt.Sprintf(`{"n":"%d"}`, n)}}
			r.Hold(held)
			if err := s.KeepContents(ctx, r, held); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, r)
	}
	labels, err := s.LabelsOf(ctx, rows...)
	if err != nil {
		t.Fatal(err)
	}
	for n, l := range labels {
		want := ""
		if n%2 == 0 {
			want = fmt.Sprintf(`{"n":"%d"}`, n)
		}
		if l.Tags != want {
			t.Errorf("row %d has tags %q, want %q", n, l.Tags, want)
		}
	}
}
