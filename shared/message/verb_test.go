package message

import (
	"reflect"
	"testing"
	"time"
)

func TestDispatch_SaysAVerbInBothForms(t *testing.T) {
	t.Parallel()
	minute := time.Date(2027, 3, 28, 12, 0, 0, 0, time.UTC)
	for text, v := range map[string]Verb{
		"2027-03-28T12:00#17":     {Fire: &Minute{At: minute, Shard: 17}},
		"parked#acme.eu-1#3":      {Unpark: &Parking{Tenant: "acme.eu-1", Shard: 3}},
		"parked#*#0":              {Unpark: &Parking{Tenant: "*"}},
		"line#acme#nightly":       {Line: &Schedule{Tenant: "acme", Schedule: "nightly"}},
		"promote#acme#a#b":        {Promote: &Schedule{Tenant: "acme", Schedule: "a#b"}},
		"reconcile#acme#01ARZ":    {Reconcile: &Run{Tenant: "acme", RunID: "01ARZ"}},
		"forget#acme#01ARZ#0":     {Forget: &Forget{Tenant: "acme", JobID: "01ARZ"}},
		"forget#acme#01ARZ#3#2.7": {Forget: &Forget{Tenant: "acme", JobID: "01ARZ", Payload: 3, Result: "2.7"}},
	} {
		if got := Ask(v); got.Slice != text {
			t.Errorf("%+v is %q for an older function, want %q", v, got.Slice, text)
		}
		for name, d := range map[string]Dispatch{
			"of release 0.1": {V: V, Slice: text}, "of this one": Ask(v), "without the text": {V: V, Verb: v},
		} {
			read, err := Decode[Dispatch](Encode(d))
			if err != nil {
				t.Fatalf("%s, %s: %v", text, name, err)
			}
			if got, err := read.Asked(); err != nil || !reflect.DeepEqual(got.Verb, v) || got.Slice != text {
				t.Errorf("%s, %s: read as %+v, %v", text, name, got, err)
			}
		}
	}
}

func TestDispatch_RefusesWhatAsksForNothingKnown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"x", "parked#", "parked#acme", "parked##3", "parked#acme#x", "line#acme", "line##s", "line#acme#",
		"promote#acme#", "reconcile##x", "forget#acme#x", "forget##x#0", "forget#acme#x#-1", "forget#acme#x#y",
		"forget#acme#x#0#r#s",
		"2027-03-28T12:00", "2027-03-28T12:00#-1",
	} {
		if d, err := (Dispatch{V: V, Slice: text}).Asked(); err == nil {
			t.Errorf("%q is read as %+v", text, d.Verb)
		}
	}
	two := Dispatch{V: V, Verb: Verb{Line: &Schedule{"acme", "s"}, Promote: &Schedule{"acme", "s"}}}
	if _, err := two.Asked(); err == nil {
		t.Error("a message that asks for two things was read")
	}
}
