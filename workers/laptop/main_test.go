package laptop

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestMain_SaysWhatIsWrongWithItsArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"help":                        {[]string{"-help"}, 0, "-secrets"},
		"an unknown argument":         {[]string{"-nowhere"}, 2, "-nowhere"},
		"a time without a zone":       {[]string{"-at", "2027-03-28T00:55:00"}, 2, "2027-03-28T00:55:00"},
		"an address of other hosts":   {[]string{"-addr", "192.0.2.1:80"}, 1, "192.0.2.1:80"},
		"another time with a folder":  {[]string{"-data", "data", "-speed", "60"}, 1, "nothing is kept"},
		"a file of secrets not there": {[]string{"-addr", "localhost:0", "-secrets", "none.env"}, 1, "none.env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			exit := command(t.Context(), append([]string{"local"}, c.args...), &out, &errs, nil)
			if exit != c.exit {
				t.Errorf("exit code %d, want %d", exit, c.exit)
			}
			if !strings.Contains(errs.String(), c.says) {
				t.Errorf("it says %q, want %q", errs.String(), c.says)
			}
		})
	}
}

func TestMain_ServesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	exit := command(ctx, []string{"local", "-addr", "localhost:0", "-drain", "1s"}, &out, &errs, nil)
	if exit != 0 || errs.Len() > 0 {
		t.Errorf("exit code %d: %s", exit, errs.String())
	}
	if !strings.HasPrefix(out.String(), "Punctual on http://") || !strings.HasSuffix(out.String(), "goodbye\n") {
		t.Errorf("it says %q", out.String())
	}
}
