package memory

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// bytesText draws a text of any bytes, most of which need no escape.
var bytesText = rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string {
	return string(b)
}))

var drawnTime = rapid.Map(rapid.Int64Range(-1<<60, 1<<60), func(n int64) time.Time { return time.Unix(0, n).UTC() })

func drawnItem(t *rapid.T, name string) keptItem {
	return rapid.Map(rapid.MapOf(bytesText, rapid.OneOf(rapid.Map(bytesText, func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }))), func(m map[string]any) keptItem { return m },
	).Draw(t, name)
}

func drawnFact(t *rapid.T) kept {
	some := func(name string) string { return bytesText.Draw(t, name) }
	at := drawnTime.Draw(t, "at")
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		return kept{Row: &keptRow{Table: some("table"), PK: some("pk"), SK: some("sk"), Item: drawnItem(t, "item")}}
	case 1:
		return kept{Row: &keptRow{Table: some("table"), PK: some("pk")}}
	case 2:
		return kept{Change: &keptChange{At: at, Next: drawnItem(t, "next")}}
	case 3:
		return kept{Read: rapid.Int64Min(1).Draw(t, "read")}
	case 4:
		return kept{Message: &keptMessage{Queue: some("queue"), ID: some("id"), Body: some("body"),
			Group: some("group"), Source: some("source"), Sent: &at, Receives: rapid.IntMin(0).Draw(t, "receives")}}
	case 5:
		return kept{Message: &keptMessage{Queue: some("queue"), ID: some("id"), Visible: &at}}
	case 6:
		return kept{Message: &keptMessage{Queue: some("queue"), ID: some("id"), Gone: true}}
	case 7:
		return kept{Timer: &keptTimer{Name: some("name"), At: &at, Body: some("body"), MaxAge: time.Hour}}
	}
	return kept{Blob: &keptBlob{Key: some("key"), Body: []byte(some("body"))}}
}

func TestFacts_AreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		facts := rapid.SliceOfN(rapid.Custom(drawnFact), 1, 5).Draw(t, "facts")
		body, err := encoded(nil, facts)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.IndexFunc(body, func(c rune) bool { return c < ' ' }); n >= 0 {
			t.Fatalf("byte %d of %q would end or damage the line", n, body)
		}
		d := decoder{names: map[string]string{}}
		got, err := d.decode(body)
		if err != nil || !reflect.DeepEqual(got, facts) {
			t.Fatalf("%q is read as %+v, %v; written was %+v", body, got, err, facts)
		}
	})
}

func TestFacts_AreNeverReadBeyondTheirEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := encoded(nil, []kept{drawnFact(t)})
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(1, len(body)-1).Draw(t, "cut")
		d := decoder{names: map[string]string{}}
		if facts, err := d.decode(body[:cut]); err == nil {
			t.Fatalf("%q without its last %d bytes is read as %+v", body, len(body)-cut, facts)
		}
	})
}

// The record ends behind the number of its attributes.
func TestFacts_WithoutTheirAttributesAreRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"c0;0;-1;2;", "c0;0;1;", "c0;0;-1;9223372036854775807;"} {
		d := decoder{names: map[string]string{}}
		if facts, err := d.decode([]byte(body)); err == nil {
			t.Errorf("%q is read as %+v", body, facts)
		}
	}
}

func TestSnapshot_HoldsRowsAsTheyWereWhenItBegan(t *testing.T) {
	t.Parallel()
	w := New(Options{})
	defer w.Close()
	change := func(n int, text string) {
		ref := item.Ref{Table: contract.Jobs, PK: fmt.Sprint("acme#", n%8), SK: fmt.Sprint("j-", n)}
		write := item.Write{Ref: ref, Name: "put", Put: item.Item{"pk": ref.PK, "job_id": ref.SK, "text": text}}
		if text == "" {
			write = item.Write{Ref: ref, Name: "delete", Delete: true}
		}
		if _, err := w.Table().Write(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 40 {
		change(n, "before")
	}
	s := w.state()
	for n := range 10 {
		change(n, "after")
		change(n+10, "")
		change(n+40, "new")
	}
	rows, changes := map[string]string{}, 0
	for k := range s.facts() {
		if k.Row != nil {
			rows[k.Row.SK] = item.Item(k.Row.Item).Str("text")
		}
		if k.Change != nil {
			changes++
		}
	}
	for n := range 40 {
		if got := rows[fmt.Sprint("j-", n)]; got != "before" {
			t.Errorf("row %d is %q", n, got)
		}
	}
	if len(rows) != 40 || changes != 40 {
		t.Errorf("there are %d rows and %d records of the stream, want 40 of each", len(rows), changes)
	}
}
