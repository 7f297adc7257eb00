package api

import (
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestProxy_TakesTheGatewaysStageAsPartOfThePath(t *testing.T) {
	t.Parallel()
	for name, ev := range map[string]events.APIGatewayProxyRequest{
		"at the gateway's own name, whose stage is v1": {Path: "/jobs/J",
			RequestContext: events.APIGatewayProxyRequestContext{Path: "/v1/jobs/J"}},
		"at a name of one's own, mapped to v1": {Path: "/v1/jobs/J",
			RequestContext: events.APIGatewayProxyRequestContext{Path: "/v1/jobs/J"}},
		"without a context": {Path: "/v1/jobs/J"},
	} {
		saw := ""
		answer := Proxy(http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			saw = r.URL.Path
			w.WriteHeader(http.StatusNoContent)
		}), nil, io.Discard)
		ev.HTTPMethod = http.MethodGet
		if resp, err := answer(t.Context(), ev); err != nil || resp.StatusCode != http.StatusNoContent ||
			saw != "/v1/jobs/J" {
			t.Errorf("%s: the API saw %q and answered %d, %v", name, saw, resp.StatusCode, err)
		}
	}
}
