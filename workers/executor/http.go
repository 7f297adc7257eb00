package executor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"punctual/shared/clock"
	"punctual/shared/job"
)

// httpExecutor calls a target over HTTP.
type httpExecutor struct {
	client     *http.Client
	guard      guard
	secrets    Secrets
	deployment string
	clock      clock.Clock
}

func newHTTP(o Options) Executor {
	g := guard{allow: o.HTTPAllow, ownPorts: o.OwnPorts, resolver: o.Resolver}
	return httpExecutor{
		// No jar: what one job's target sets is not sent by another job.
		client: &http.Client{Transport: g.transport(), CheckRedirect: g.follow},
		guard:  g, secrets: o.Secrets, deployment: o.Deployment, clock: o.Clock,
	}
}

func (h httpExecutor) Run(ctx context.Context, w Work) (json.RawMessage, error) {
	secrets := &wallet{secrets: h.secrets, tenant: w.Key.Tenant, deployment: h.deployment}
	req, err := h.request(ctx, w, secrets)
	if err != nil {
		return nil, err
	}
	log := callLog{w.log(), h.clock.Now(), h.clock, secrets}
	log.sent(req)
	answer, err := h.send(ctx, req, secrets)
	if err != nil {
		log.failed(err)
		return nil, err
	}
	defer answer.Body.Close()
	log.answered(req, answer)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return nil, failureOf(answer, h.clock.Now())
	}
	result, err := readResult(answer, secrets, w.Most())
	if err != nil && !errors.Is(err, ErrShortened) {
		err = unanswered(ctx, err)
		log.failed(err)
		return nil, err
	}
	return result, err
}

// send sends a request and returns the answer.
func (h httpExecutor) send(ctx context.Context, req *http.Request, secrets *wallet) (*http.Response, error) {
	answer, err := h.client.Do(req)
	if err == nil {
		return answer, nil
	}
	failure := secrets.scrubbed(unanswered(ctx, err))
	if last := new(url.Error); errors.As(err, &last) && last.URL != req.URL.String() && errors.Is(err, errRefused) {
		failure = redirected(failure)
	}
	return nil, failure
}

// Shortens says that an answer's body is cut, and not its result as a whole.
func (httpExecutor) Shortens() {}

// unanswered says what a call without a whole answer means.
func unanswered(ctx context.Context, err error) error {
	var decided *Failure
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling the target: %w", context.Cause(ctx))
	case errors.As(err, &decided): // by follow
		return decided
	case errors.Is(err, errRefused):
		return never(job.CodeTargetRefused, errRefused.Error())
	}
	return &Failure{Code: CodeNetwork, Message: "calling the target: " + said(err)}
}

// said names what went wrong on the way in our own words. net/http's errors hold the URL,
// which may hold a key, and quote answers that they cannot read.
func said(err error) string {
	var (
		lookup  *net.DNSError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "there is no such host"
	case errors.As(err, &lookup):
		return "the host could not be looked up"
	case errors.As(err, &host):
		return "the certificate is for another host"
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &cert):
		return "the certificate is not to be trusted"
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return "TLS could not be agreed on"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err,
		io.ErrUnexpectedEOF):
		return "the connection ended before the answer was complete"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "there is no way to the host"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the connection took too long"
	}
	return "no valid answer came"
}
