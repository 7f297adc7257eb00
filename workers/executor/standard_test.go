package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	kind "punctual/shared/executor"
	"punctual/shared/job"
	"punctual/shared/tenant"
	"punctual/workers/executor"
)

// work is a first attempt of tenant acme with that payload; %q-like quoting is the caller's.
func work(payload string) executor.Work {
	return executor.Work{
		Key:        job.Key{Tenant: "acme", ID: "01JDMG000000000000000000J1"},
		HandlerKey: "01JDMG000000000000000000H1", Attempt: 1, Token: 7,
		Payload:  json.RawMessage(payload),
		Progress: func(int64, int64, string) {},
	}
}

// requireFailure asks for a *Failure with that code and permanence.
func requireFailure(t *testing.T, err error, code string, permanent bool) *executor.Failure {
	t.Helper()
	var f *executor.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v; want a failure %q", err, code)
	}
	if f.Code != code || f.Permanent != permanent {
		t.Fatalf("got failure %q (permanent %v): %s; want %q (permanent %v)", f.Code, f.Permanent, f.Message, code,
			permanent)
	}
	if f.Message == "" {
		t.Fatalf("failure %q has no sentence for people", code)
	}
	return f
}

func TestStandard_RunsEveryKindButGo(t *testing.T) {
	t.Parallel()
	all := executor.Standard(executor.Options{})
	for _, name := range kind.Names() {
		if (all[name] != nil) != (name != kind.Go) {
			t.Errorf("%q is run: %v", name, all[name] != nil)
		}
	}
	if len(all) != len(kind.Names()) { // without go, and with that of deliveries
		t.Errorf("%d executors for %d kinds", len(all), len(kind.Names()))
	}
}

// vault holds secrets by ARN.
type vault map[string]string

func (v vault) Hosts(_ context.Context, arn string) ([]string, bool, error) {
	hosts, bound := v["hosts of "+arn]
	return strings.Fields(hosts), bound, nil
}

func (v vault) Resolve(_ context.Context, arn string) (string, error) {
	if s, ok := v[arn]; ok {
		return s, nil
	}
	return "", errNotThere
}

func arnOf(t tenant.ID, name string) string {
	return "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/" + string(t) + "/" + name
}

func requireWithout(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s holds the secret: %.200s", what, text)
		}
	}
}
