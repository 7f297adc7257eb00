package api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"punctual/shared/telemetry"
)

//proof:of 51
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
		}), telemetry.StageAPIRead, nil, io.Discard)
		ev.HTTPMethod = http.MethodGet
		if resp, err := answer(t.Context(), ev); err != nil || resp.StatusCode != http.StatusNoContent ||
			saw != "/v1/jobs/J" {
			t.Errorf("%s: the API saw %q and answered %d, %v", name, saw, resp.StatusCode, err)
		}
	}
}

func TestProxy_CountsFailedRequestsOfItsStageAndVersion(t *testing.T) {
	t.Parallel()
	meter, lines := &telemetry.Meter{Version: "7"}, new(bytes.Buffer)
	status := http.StatusOK
	answer := Proxy(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
		telemetry.StageAPIRead, meter, lines)
	for _, status = range []int{http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable} {
		if _, err := answer(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: http.MethodGet,
			Path: "/x"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`"requests_failed_total":1,"stage":"api-read"}`,
		`"requests_failed_total":1,"stage":"api-read","version":"7"}`} {
		if got := strings.Count(lines.String(), want); got != 1 {
			t.Errorf("%s was written %d times in %s", want, got, lines)
		}
	}
}
