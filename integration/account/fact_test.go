package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"punctual/integration/emulator/environment"
)

func TestFacts_SayWhatNeedsThemOrWhoKnows(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, f := range facts {
		switch {
		case f.name == "" || f.needs == "" || names[f.name]:
			t.Errorf("%q has no name of its own, or nothing that needs it", f.name)
		case (f.observe == nil) == (f.where == ""):
			t.Errorf("%s is looked at, or something says where; not both, and not neither", f.name)
		}
		names[f.name] = true
	}
	if len(facts) < 15 {
		t.Errorf("only %d facts", len(facts))
	}
}

func TestCheck_SaysWhetherAFactHolds(t *testing.T) {
	t.Parallel()
	sees := func(holds bool, err error) fact {
		return fact{name: "the sky", needs: "blue", observe: func(context.Context, *probe) (string, bool, error) {
			return "it is grey", holds, err
		}}
	}
	ctx, here, there := t.Context(), &probe{}, &probe{emulated: true}
	reported := fact{name: "the sky", where: "a window"}
	for want, v := range map[string]verdict{
		"the sky: holds; it is grey":                               check(ctx, sees(true, nil), here),
		"the sky: DOES NOT HOLD; it is grey; the code needs: blue": check(ctx, sees(false, nil), here),
		"the sky: not judged; night":                               check(ctx, sees(true, errors.New("night")), here),
		"the sky: not judged; the emulator: it is grey":            check(ctx, sees(false, nil), there),
		"the sky: not judged; a window":                            check(ctx, reported, here),
	} {
		if got := v.String(); got != want {
			t.Errorf("it says %q; want %q", got, want)
		}
	}
	both := report([]verdict{check(ctx, sees(true, nil), here), check(ctx, sees(true, nil), there)})
	if !strings.Contains(both, "1 of 2 facts were judged") {
		t.Error(both)
	}
}

// Whether each way of looking works; what is seen is the emulator's own.
//
//proof:of M3
func TestFacts_AreLookedAtOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg := environment.MiniStack(t).Config()
	p, err := newProbe(t.Context(), cfg, fmt.Sprint("punctual-facts-", time.Now().UnixNano()), true)
	t.Cleanup(func() {
		if err := p.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	all := checkAll(t.Context(), facts, p)
	said := report(all)
	t.Log("\n" + said)
	if !strings.Contains(said, fmt.Sprintf("0 of %d facts were judged", len(facts))) {
		t.Error("an emulator's answers count as AWS's")
	}
	for _, v := range all {
		if v.observe != nil && v.err != nil {
			t.Errorf("%s could not be looked at: %v", v.name, v.err)
		}
	}
}
