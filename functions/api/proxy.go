package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/telemetry"
	"punctual/shared/tenant"
)

// Proxy answers API Gateway's proxy events with h. The identity is the authorizer's; nothing else in the event is
// trusted. It flushes the metrics to out after each answer, because a Lambda sleeps between two. stage names the
// function in the count of failed requests, which a canary compares between versions.
func Proxy(
	h http.Handler, stage string, m *telemetry.Meter, out io.Writer,
) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		if m != nil {
			defer func() { _ = m.Flush(out, time.Now()) }() // a failure must not fail the answer
		}
		if whole := ev.RequestContext.Path; whole != "" { // the stage is the version, and ev.Path leaves it out
			ev.Path = whole
		}
		w := core.NewProxyResponseWriter()
		var events core.RequestAccessor
		r, err := events.EventToRequestWithContext(rest.WithIdentity(ctx, identityOf(ev)), ev)
		if err != nil { // the path or the body is malformed
			spec.Catalogue.Write(w, ev.RequestContext.RequestID,
				rest.NewProblem(rest.CodeInvalidValue, "the request cannot be read"))
			return w.GetProxyResponse()
		}
		if r.Header.Get("X-Request-Id") == "" {
			r.Header.Set("X-Request-Id", ev.RequestContext.RequestID)
		}
		h.ServeHTTP(w, r)
		answer, err := w.GetProxyResponse()
		if answer.StatusCode >= http.StatusInternalServerError {
			m.Count(telemetry.RequestsFailed, 1, telemetry.Dim{Key: "stage", Value: stage})
		}
		return answer, err
	}
}

// identityOf reads the authorizer's context in the event; the zero Identity is no caller.
func identityOf(ev events.APIGatewayProxyRequest) tenant.Identity {
	text := func(name string) string { s, _ := ev.RequestContext.Authorizer[name].(string); return s }
	id := tenant.Identity{Tenant: tenant.ID(text("tenant")), Subject: text("subject")}
	for _, s := range strings.Fields(text("scopes")) {
		id.Scopes = append(id.Scopes, tenant.Scope(s))
	}
	return id
}
