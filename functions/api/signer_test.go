package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"punctual/functions/api"
	"punctual/shared/contract"
	"punctual/shared/fault"
	"punctual/shared/telemetry"
)

// tagged is the tags of roles by ARN.
type tagged map[string]map[string]string

func (of tagged) Tags(_ context.Context, arn string) (map[string]string, error) {
	if tags, ok := of[arn]; ok {
		return tags, nil
	}
	return nil, fault.New(fault.NotFound, nil, "nobody")
}

func TestSigned_SaysWhyTheSignerIsNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const role = "arn:aws:sts::1:assumed-role/"
	by := api.Signed(contract.AuthIAM, tagged{
		role + "billing/s": {"punctual:tenant": "acme", "punctual:scopes": "read"},
		role + "none/s":    {},
		role + "all/s":     {"punctual:tenant": "*"},
	}, api.Proxy(b.handler, telemetry.StageAPIRead, nil, io.Discard))
	for name, c := range map[string]struct {
		arn, account, method string
		status               int
		detail               string
	}{
		"a reader reads":              {role + "billing/s", "1", "GET", 200, ""},
		"a reader may not write":      {role + "billing/s", "1", "POST", 403, "the signer's tag punctual:scopes"},
		"a role without tags":         {role + "none/s", "1", "GET", 401, `none/s has "" as its tag punctual:tenant`},
		"a tag that names no tenant":  {role + "all/s", "1", "GET", 401, `has "*" as its tag punctual:tenant: a`},
		"a role that is gone":         {role + "gone/s", "1", "GET", 401, "gone/s has"},
		"a role of another account":   {role + "billing/s", "2", "GET", 401, "is of another account"},
		"a request without signature": {"", "", "GET", 401, "is not signed"},
	} {
		ev := events.APIGatewayProxyRequest{HTTPMethod: c.method, Path: "/v1/jobs", Body: `{"task":"echo"}`,
			Headers: map[string]string{"Content-Type": "application/json"}}
		ev.RequestContext.AccountID = "1"
		ev.RequestContext.Identity.UserArn, ev.RequestContext.Identity.AccountID = c.arn, c.account
		got, err := by(t.Context(), ev)
		var problem struct{ Detail string }
		_ = json.Unmarshal([]byte(got.Body), &problem) // a list has none
		if err != nil || got.StatusCode != c.status || !strings.Contains(problem.Detail, c.detail) {
			t.Errorf("%s: %d %s, %v; want %d with %q", name, got.StatusCode, got.Body, err, c.status, c.detail)
		}
		scheme := http.Header(got.MultiValueHeaders).Get("WWW-Authenticate")
		if (c.status == 401) != (scheme == "AWS4-HMAC-SHA256") {
			t.Errorf("%s: it asks for %q", name, scheme)
		}
	}
}
