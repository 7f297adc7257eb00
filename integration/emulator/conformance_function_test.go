package emulator_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"punctual/integration/emulator/environment"
	"punctual/shared/aws/function"
	"punctual/shared/fault"
)

// echo is a function that returns its input, or fails if asked to.
const echo = `
def handler(event, context):
    if event.get("fail"):
        raise ValueError("as asked")
    return event
`

// deployEcho creates a function with these tags and returns its name.
func deployEcho(t *testing.T, api *lambda.Client, tags map[string]string) string {
	t.Helper()
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	w, err := z.Create("echo.py")
	if err == nil {
		_, err = w.Write([]byte(echo))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	name := deployment().Prefix
	_, err = api.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String(name), Runtime: types.RuntimePython312, Handler: aws.String("echo.handler"),
		Tags: tags,
		Role: aws.String("arn:aws:iam::000000000000:role/echo"), Code: &types.FunctionCode{ZipFile: code.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := lambda.NewFunctionActiveV2Waiter(api)
	if err := waiter.Wait(t.Context(), &lambda.GetFunctionInput{FunctionName: aws.String(name)}, patient); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFunction_RunsOnceOverMiniStack(t *testing.T) {
	t.Parallel()
	cfg := environment.MiniStack(t).Config()
	name := deployEcho(t, lambda.NewFromConfig(cfg), nil)
	functions := function.New(cfg)

	out, failed, err := functions.Invoke(t.Context(), name, []byte(`{"n":1}`))
	if err != nil || failed != "" || strings.Join(strings.Fields(string(out)), "") != `{"n":1}` {
		t.Errorf("got %s, %q, %v; want its input back", out, failed, err)
	}
	out, failed, err = functions.Invoke(t.Context(), name, []byte(`{"fail":true}`))
	if err != nil || failed == "" || !strings.Contains(string(out), "as asked") {
		t.Errorf("got %s, %q, %v; want its failure and no error", out, failed, err)
	}
	if _, _, err := functions.Invoke(t.Context(), name+"x", nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an absent function: %v; want not found", err)
	}
}

func TestFunction_BelongsToTheTenantOfItsTag(t *testing.T) {
	t.Parallel()
	cfg := environment.MiniStack(t).Config()
	api, functions := lambda.NewFromConfig(cfg), function.New(cfg)
	for _, c := range []struct {
		owner      string
		acme, zeta bool
	}{{"acme", true, false}, {"*", true, true}, {"", false, false}} {
		tags := map[string]string{}
		if c.owner != "" {
			tags["punctual:tenant"] = c.owner
		}
		name := deployEcho(t, api, tags)
		acme, err := functions.Allowed(t.Context(), name, "acme")
		zeta, err2 := functions.Allowed(t.Context(), name, "zeta")
		if err != nil || err2 != nil || acme != c.acme || zeta != c.zeta {
			t.Errorf("tagged %q: acme %v (%v), zeta %v (%v); want %v and %v", c.owner, acme, err, zeta, err2, c.acme,
				c.zeta)
		}
	}
	if _, err := functions.Allowed(t.Context(), "nowhere", "acme"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an absent function: %v; want not found", err)
	}
}
