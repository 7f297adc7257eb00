package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/shared/audit"
	"punctual/shared/item"
)

var at = time.Date(2027, 3, 28, 12, 0, 0, 5e6, time.UTC)

func newIntent() *audit.Intent {
	return audit.NewIntent(audit.Entry{At: at, Tenant: "acme", Actor: audit.Actor{Subject: "ana", Via: audit.ViaToken},
		Action: audit.SchedulePut, Resource: "schedule/morning", RequestID: "r1"}, "id", time.Hour)
}

// entryOf returns the entry that an intent writes.
func entryOf(t *testing.T, i *audit.Intent) (audit.Entry, item.Write) {
	t.Helper()
	w, ok := i.Write()
	if !ok {
		t.Fatal("there is no write")
	}
	e, err := audit.Parse(w.Put)
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

func TestIntent_IsWrittenOnce(t *testing.T) {
	t.Parallel()
	i := newIntent()
	e, w := entryOf(t, i)
	if e.At != at || e.Actor.Subject != "ana" || e.Action != audit.SchedulePut || e.Resource != "schedule/morning" ||
		w.PK != "audit#acme#2027-03-28" || w.SK != "12:00:00.005#id" ||
		w.Put.Int("expires_at") != at.Add(time.Hour).Unix() {
		t.Errorf("the write is %+v of %+v", w, e)
	}
	if _, ok := i.Write(); !ok || i.IsWritten() {
		t.Error("it is written before its transaction was made")
	}
	i.Written()
	if _, ok := i.Write(); ok || !i.IsWritten() {
		t.Error("it is written twice")
	}
	none := audit.From(context.Background())
	none.Asked(json.RawMessage(`{}`))
	none.Changed(1, 2)
	if _, ok := none.Write(); ok || !none.IsWritten() || none.Action() != "" {
		t.Error("no intent is written")
	}
	if ctx := audit.Without(audit.With(context.Background(), i)); audit.From(ctx) != nil {
		t.Error("what is done besides has the intent")
	}
}

func TestIntent_NotesTheChanges(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a1B2", 9)
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", `{"a":1}`, `{"a":1.0}`, ""},
		{"a value", `{"a":1,"b":2}`, `{"a":1,"b":3}`, "/b 2→3"},
		{"one that comes and one that goes", `{"a":1}`, `{"b":2}`, "/a 1→,/b →2"},
		{"a value below", `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, "/a/b/c 1→2"},
		{"a list is one value", `{"a":[1,2]}`, `{"a":[1,3]}`, "/a [1,2]→[1,3]"},
		{"an object in place of a text", `{"a":"x"}`, `{"a":{"b":1}}`, `/a "x"→{"b":1}`},
		{"a new resource", ``, `{"a":{"b":1},"c":2}`, "/a/b →1,/c →2"},
		{"an empty object", `{"a":null}`, `{"a":{}}`, "/a null→{}"},
		{"what follows from a change", `{"version":1,"job":{"payload_size":1}}`,
			`{"version":2,"job":{"payload_size":2}}`, ""},
		{"the version of the dag of a schedule", `{"dag":{"name":"a","version":1}}`, `{"dag":{"name":"b","version":2}}`,
			`/dag/name "a"→"b",/dag/version 1→2`},
		{"a payload", `{"job":{"payload":{"a":1}}}`, `{"job":{"payload":{"a":2}}}`, "/job/payload omitted"},
		{"a payload that is the same", `{"payload":{"a":1}}`, `{"payload":{"a":1}}`, ""},
		{"headers and params", `{}`, `{"headers":{"x":"y"},"params":{"p":1},"result":1}`,
			"/headers omitted,/params omitted,/result omitted"},
		{"a large value", `{}`, `{"a":"` + strings.Repeat("x", 600) + `"}`, "/a omitted"},
		{"the name of a secret", `{"password":"correct horse"}`, `{"password":"battery staple"}`, "/password omitted"},
		{"a token", `{}`, `{"a":{"note":"` + token + `"}}`, "/a/note omitted"},
		{"a token in a list", `{}`, `{"a":["` + token + `"]}`, "/a omitted"},
		{"a password in a URL", `{}`, `{"url":"https://ana:verysecret@example.com/"}`, "/url omitted"},
		{"a name with a slash", `{}`, `{"a/b":1}`, "/a~1b →1"},
	} {
		t.Run("it notes "+c.name, func(t *testing.T) {
			t.Parallel()
			i := newIntent()
			var from any
			if c.from != "" {
				from = json.RawMessage(c.from)
			}
			i.Changed(from, json.RawMessage(c.to))
			e, w := entryOf(t, i)
			var got []string
			for _, change := range e.Changes {
				text := fmt.Sprintf("%s %s→%s", change.Pointer, change.From, change.To)
				if change.Omitted {
					text = change.Pointer + " omitted"
				}
				got = append(got, text)
			}
			if text := strings.Join(got, ","); text != c.want {
				t.Errorf("the changes are %s, want %s", text, c.want)
			}
			for _, secret := range []string{token, "horse", "staple", "verysecret"} {
				if strings.Contains(fmt.Sprint(w.Put), secret) {
					t.Errorf("it has a secret: %v", w.Put)
				}
			}
		})
	}
}

func TestIntent_BoundsTheChanges(t *testing.T) {
	t.Parallel()
	fields := map[string]string{}
	for n := range 150 {
		fields[fmt.Sprintf("f%03d", n)] = strings.Repeat("x", 500)
	}
	i := newIntent()
	i.Changed(nil, fields)
	e, w := entryOf(t, i)
	if len(e.Changes) != audit.MaxChanges || e.More != 50 || w.Put.Size() > 40<<10 {
		t.Errorf("%d changes, %d more, %d bytes", len(e.Changes), e.More, w.Put.Size())
	}
}

func TestIntent_NotesWhatWasAsked(t *testing.T) {
	t.Parallel()
	i := newIntent()
	i.Asked(json.RawMessage(`{"reason":"the mail server is down","missed":"drop"}`))
	e, _ := entryOf(t, i)
	if e.Reason != "the mail server is down" || len(e.Changes) != 1 || e.Changes[0].Pointer != "/missed" {
		t.Errorf("the entry is %+v", e)
	}
	i.Asked(json.RawMessage(`{"reason":"the mail server is down"}`))
	if e, _ := entryOf(t, i); len(e.Changes) != 0 {
		t.Errorf("a reason alone changes %+v", e.Changes)
	}
	i.Asked(json.RawMessage(`{"reason":"Bearer ` + strings.Repeat("a1B2", 9) + `"}`))
	if e, _ := entryOf(t, i); e.Reason != "…" {
		t.Errorf("the reason is %q", e.Reason)
	}
}

func TestFilter_Selects(t *testing.T) {
	t.Parallel()
	e := audit.Entry{Actor: audit.Actor{Subject: "ana"}, Action: audit.NodeSkip, Resource: "run/1/node/a"}
	for _, c := range []struct {
		filter audit.Filter
		want   bool
	}{
		{audit.Filter{}, true},
		{audit.Filter{Actor: "ana", Action: audit.NodeSkip, Resource: "run/1"}, true},
		{audit.Filter{Resource: "run/1/node/a"}, true},
		{audit.Filter{Resource: "run/1/node/"}, false},
		{audit.Filter{Resource: "run/11"}, false},
		{audit.Filter{Actor: "ben"}, false},
		{audit.Filter{Action: audit.NodeRetry}, false},
	} {
		if c.filter.Selects(e) != c.want {
			t.Errorf("%+v selects: %v", c.filter, !c.want)
		}
	}
}
