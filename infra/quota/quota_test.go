package quota

import (
	"context"
	"errors"
	"strings"
	"testing"

	"punctual/infra/target"
)

// allowed are quotas by their code; a code that is not there cannot be read.
type allowed map[string]float64

func (a allowed) Value(_ context.Context, _, code string) (float64, error) {
	v, ok := a[code]
	if !ok {
		return 0, errors.New("you may not ask")
	}
	return v, nil
}

func settings(t *testing.T, name string) target.Settings {
	t.Helper()
	s, err := target.Load(func(key string) string {
		return map[string]string{"target": name, "issuer": "https://id.example.com", "audience": "punctual"}[key]
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newAccount() allowed {
	return allowed{concurrency: 10, "L-1216C47A": 5, "L-0263D0A3": 5, "L-F678F1CE": 5, "L-1194D53C": 100}
}

func grown() allowed {
	return allowed{concurrency: 1000, "L-1216C47A": 256, "L-0263D0A3": 5, "L-F678F1CE": 5, "L-1194D53C": 100}
}

func TestRead_SaysWhatToAskFor(t *testing.T) {
	t.Parallel()
	r := Read(t.Context(), settings(t, "prod"), newAccount())
	said := strings.Join(r.Says, "\n")
	for _, want := range []string{
		"allowed 10 invocations of functions at once in us-east-1, and prod wants 700",
		"--service-code lambda --quota-code L-B99A9384 --desired-value 1000", "allowed 5 cores",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if len(r.Says) != 2 || r.Concurrency != 10 {
		t.Errorf("it knows of %d invocations, and says\n%s", r.Concurrency, said)
	}
}

func TestRead_IsSilentWhereAllIsEnough(t *testing.T) {
	t.Parallel()
	if r := Read(t.Context(), settings(t, "prod"), grown()); len(r.Says) != 0 || r.Concurrency != 1000 {
		t.Errorf("got %+v", r)
	}
	if r := Read(t.Context(), settings(t, "dev"), newAccount()); len(r.Says) != 0 {
		t.Errorf("dev wants more than a new account has: %v", r.Says)
	}
}

func TestRead_TakesAnAccountThatDoesNotAnswerForLargeEnough(t *testing.T) {
	t.Parallel()
	r := Read(t.Context(), settings(t, "prod"), allowed{})
	if r.Concurrency != 0 || len(r.Says) != 1 || !strings.Contains(r.Says[0], "you may not ask") {
		t.Errorf("got %+v", r)
	}
}
