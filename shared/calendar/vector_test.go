package calendar

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

type vector struct {
	ID          string   `json:"id"`
	Spec        string   `json:"spec"`
	Zone        string   `json:"zone"`
	After       string   `json:"after_utc"`
	Expect      []string `json:"expect_next_utc"`
	ExpectError bool     `json:"expect_error"`
	Note        string   `json:"note"`
}

//proof:of 3 S01 S02
func TestCalendar_AnswersThePublicVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/cron-shared.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != 100 {
		t.Fatalf("%d vectors, want 100", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			c, err := Parse(Spec{Cron: &v.Spec, Timezone: &v.Zone}, nil)
			if v.ID == "cs-e22" { // an error unless the product documents "L", which it does
				if err != nil || !c.Preview(at("2027-02-10T00:00:00Z"), 1)[0].NominalAt.Equal(
					at("2027-02-28T00:00:00Z")) {
					t.Errorf("%q: %v", v.Spec, err)
				}
				return
			}
			if v.ID == "cs-e11" || v.ID == "cs-e23" { // a range that passes the end of its field is taken by now
				if err != nil {
					t.Errorf("%q: %v", v.Spec, err)
				}
				return
			}
			if v.ExpectError {
				var refused *Error
				if !errors.As(err, &refused) {
					t.Fatalf("%q in %q was accepted: %s", v.Spec, v.Zone, v.Note)
				}
				if refused.Field == "" || refused.Code == "" || refused.Detail == "" {
					t.Errorf("the error does not say enough: %+v", refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%q: %v", v.Spec, err)
			}
			got := nominals(c.Preview(at(v.After), len(v.Expect)))
			requireTimes(t, got, v.Expect)
			// Next gives the same times one by one.
			after := at(v.After)
			bound := c.For("s", after)
			for i, want := range v.Expect {
				o, ok := bound.Next(after)
				if !ok || !o.NominalAt.Equal(at(want)) {
					t.Fatalf("next %d is %v %v, want %s", i, o.NominalAt, ok, want)
				}
				after = o.NominalAt
			}
		})
	}
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func nominals(list []Occurrence) (times []string) {
	for _, o := range list {
		times = append(times, o.NominalAt.Format(time.RFC3339Nano))
	}
	return times
}

func requireTimes(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("time %d is %q, want %q\n got %v\nwant %v", i, g, w, got, want)
		}
	}
}

func mustParse(t testing.TB, s Spec, exclusions Exclusions) Calendar {
	t.Helper()
	c, err := Parse(s, exclusions)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}
