package executor_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"punctual/shared/fault"
	"punctual/workers/executor"
)

// S41: a target that hands back what it was sent must not put the secret into a result or an error.
//
//proof:of S41
func TestHTTP_KeepsSecretsOutOfResultsAndErrors(t *testing.T) {
	t.Parallel()
	const token, apiKey = `t0p "secret" \ & <value>`, "another-s3cret"
	forms := map[string]func(string) string{
		"as it is":  func(s string) string { return s },
		"as JSON":   func(s string) string { b, _ := json.Marshal(s); return string(b) },
		"in a URL":  url.QueryEscape,
		"in base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"in hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
	}
	for name, form := range forms {
		for _, status := range []int{200, 401, 500} {
			t.Run(fmt.Sprint(name, " with ", status), func(t *testing.T) {
				t.Parallel()
				tg := newTarget(t, func(w http.ResponseWriter, r *http.Request) {
					bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
					if bearer != token || r.Header.Get("X-Api-Key") != apiKey {
						t.Errorf("the target got %q and %q", bearer, r.Header.Get("X-Api-Key"))
					}
					w.WriteHeader(status)
					_, _ = io.WriteString(w, "you sent "+form(bearer)+" and "+form(r.Header.Get("X-Api-Key"))+
						", signed with "+form(signingKey)+", also known as "+form(signingKey[6:]))
				})
				o := executor.Options{HTTPAllow: loopback, Secrets: vault{arnOf("acme", "t"): token,
					arnOf("acme", "k"): apiKey, arnOf("acme", "hook"): signingKey}}
				raw, err := httpOf(o).Run(t.Context(),
					work(fmt.Sprintf(`{"url":%q,"auth":{"bearer":%q},"headers":{"X-Api-Key":%q},"sign_with":%q}`,
						tg.URL, arnOf("acme", "t"), arnOf("acme", "k"), arnOf("acme", "hook"))))
				if status == 200 {
					r := requireResult(t, raw, err)
					want := "you sent [secret] and [secret], signed with [secret], also known as [secret]"
					if strings.ReplaceAll(r.Body, `"`, "") != want {
						t.Errorf("body is %q", r.Body)
					}
					return
				}
				if err == nil {
					t.Fatal("no error")
				}
				for _, s := range []string{token, apiKey, signingKey} {
					requireWithout(t, "the error", err.Error(), form(s))
				}
			})
		}
	}
}

// A secret across the edge of what is kept or read would otherwise leave a part of itself.
func TestHTTP_KeepsPartsOfSecretsOutOfResultsToo(t *testing.T) {
	t.Parallel()
	const token = "abcdefghijklmnopqrstuvwxyz0123456789"
	for _, fill := range []int{10<<10 - 60, 10<<10 - 42 - 18, 10<<10 - 42 - 4} {
		tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(".", fill)+token)
		})
		o := executor.Options{HTTPAllow: loopback, Secrets: vault{arnOf("acme", "t"): token}}
		raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":%q,"auth":{"bearer":%q}}`, tg.URL,
			arnOf("acme", "t"))))
		requireWithout(t, "the body", requireResult(t, raw, err).Body, "abc")
	}
	long := strings.Repeat("k", 200<<10) // few of them fill what is read, and shrink to nothing
	tg := newTarget(t, func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, strings.Repeat(long+".", 8))
	})
	o := executor.Options{HTTPAllow: loopback, Secrets: vault{arnOf("acme", "hook"): "whsec_" + long}}
	raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":%q,"sign_with":%q}`, tg.URL,
		arnOf("acme", "hook"))))
	requireWithout(t, "the body", requireResult(t, raw, err).Body, "kk")
}

//proof:of 121 187
func TestHTTP_ResolvesOnlyTheTenantsOwnSecrets(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	everything := anyVault{}
	for _, arn := range []string{
		arnOf("other", "t"), arnOf("acme2", "t"), arnOf("acm", "t"), arnOf("acme", ""), arnOf("ACME", "t"),
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme",
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/acme/t", // as names were before deployments
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual-dev/acme/t",
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/database",
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:x/punctual/punctual/acme/t",
		"arn:aws:ssm:eu-central-1:123456789012:parameter/punctual/acme/t",
		"arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/acme/t:username::",
		arnOf("acme", "t\n"), " " + arnOf("acme", "t"), "punctual/acme/t", "hunter2-plain-password",
	} {
		for _, payload := range []string{`{"url":%q,"auth":{"bearer":%q}}`, `{"url":%q,"sign_with":%q}`} {
			_, err := httpOf(executor.Options{HTTPAllow: loopback, Secrets: everything}).Run(t.Context(),
				work(fmt.Sprintf(payload, tg.URL, arn)))
			f := requireFailure(t, err, executor.CodeSecret, true)
			requireWithout(t, "the message", f.Message, "hunter2", "database")
		}
	}
	_, err := httpOf(executor.Options{HTTPAllow: loopback, Secrets: everything}).Run(t.Context(),
		work(fmt.Sprintf(`{"url":%q,"headers":{"X-Api-Key":%q}}`, tg.URL, arnOf("other", "t"))))
	requireFailure(t, err, executor.CodeSecret, true)
	if n := len(tg.requests()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

type anyVault struct{}

func (anyVault) Resolve(context.Context, string) (string, error) { panic("a secret was asked for") }

func (anyVault) Hosts(context.Context, string) ([]string, bool, error) {
	panic("a secret was asked for")
}

type brokenVault struct{ error }

func (v brokenVault) Hosts(context.Context, string) ([]string, bool, error) {
	return nil, false, v.error
}

func (v brokenVault) Resolve(context.Context, string) (string, error) { return "", v.error }

func TestHTTP_SaysWhetherAnUnreadableSecretMayBecomeReadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secrets   executor.Secrets
		permanent bool
	}{
		"throttled":      {brokenVault{fault.New(fault.Throttled, nil, "reading")}, false},
		"unknown":        {brokenVault{io.ErrClosedPipe}, false},
		"not there":      {vault{}, true},
		"forbidden":      {brokenVault{fault.New(fault.Forbidden, nil, "reading")}, true},
		"no vault":       {nil, true},
		"empty":          {vault{arnOf("acme", "t"): ""}, true},
		"not for header": {vault{arnOf("acme", "t"): "a\r\nHost: b"}, true},
	} {
		_, err := httpOf(executor.Options{Secrets: c.secrets}).Run(t.Context(),
			work(fmt.Sprintf(`{"url":"https://a.test","auth":{"bearer":%q}}`, arnOf("acme", "t"))))
		f := requireFailure(t, err, executor.CodeSecret, c.permanent)
		requireWithout(t, name, f.Message, "Host")
	}
	for _, key := range []string{"whsec_", "whsec_no base64", "hunter2!", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==",
		"whsec_c2hvcnQ=", "c2hvcnQ="} {
		o := executor.Options{Secrets: vault{arnOf("acme", "t"): key}}
		_, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":"http://a.test","sign_with":%q}`,
			arnOf("acme", "t"))))
		f := requireFailure(t, err, executor.CodeSecret, true)
		requireWithout(t, "the message", f.Message, "hunter2", "no base64")
	}
}

func TestHTTP_SendsASecretOverTLSOrToItsOwnMachineOnly(t *testing.T) {
	t.Parallel()
	secrets := vault{arnOf("acme", "t"): "t0p-secret", arnOf("acme", "hook"): signingKey}
	names := resolver{"plain.test": {{"127.0.0.1"}}, "a.localhost": {{"127.0.0.1"}}}
	tg := newTarget(t, ok)
	o := executor.Options{HTTPAllow: loopback, Resolver: names, Secrets: secrets}
	for _, payload := range []string{`{"url":%q,"auth":{"bearer":%q}}`, `{"url":%q,"headers":{"X-Api-Key":%q}}`} {
		_, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(payload, "http://plain.test:"+tg.port()+"/",
			arnOf("acme", "t"))))
		requireFailure(t, err, executor.CodeSecret, true)
		for _, host := range []string{"127.0.0.1", "a.localhost"} {
			raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(payload, "http://"+host+":"+tg.port()+"/",
				arnOf("acme", "t"))))
			requireResult(t, raw, err)
		}
	}
	if n := len(tg.requests()); n != 4 {
		t.Errorf("%d requests went out, want the 4 to this machine", n)
	}
	raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":%q,"sign_with":%q}`,
		"http://plain.test:"+tg.port()+"/", arnOf("acme", "hook"))))
	requireResult(t, raw, err) // a signature shows nothing of its key
	_, err = httpOf(executor.Options{Secrets: secrets}).Run(t.Context(),
		work(fmt.Sprintf(`{"url":"http://127.0.0.1:1/","auth":{"bearer":%q}}`, arnOf("acme", "t"))))
	if err == nil {
		t.Error("loopback was called where it is not opened")
	}
}

//proof:of F35
func TestHTTP_SendsABoundSecretToItsHostsOnly(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	names := resolver{}
	for _, name := range []string{"a.localhost", "a.LOCALHOST", "b.localhost", "sub.b.localhost", "xb.localhost"} {
		names[name] = [][]string{{"127.0.0.1"}}
	}
	for field, payload := range map[string]string{
		"auth.bearer": `{"url":%q,"auth":{"bearer":%q}}`, "headers.X-Api-Key": `{"url":%q,` +
			`"headers":{"X-Api-Key":%q}}`, "sign_with": `{"url":%q,"sign_with":%q}`,
	} {
		for _, c := range []struct {
			tag, host string
			sent      bool
		}{
			{"a.localhost", "a.localhost", true}, {"c.localhost A.localhost.", "a.LOCALHOST", true}, {"a.localhost",
				"a.localhost.", true},
			{".b.localhost", "sub.b.localhost", true}, {"127.0.0.1", "127.0.0.1", true},
			{"a.localhost", "b.localhost", false}, {".b.localhost", "b.localhost", false}, {".b.localhost",
				"xb.localhost", false}, {"b.localhost", "sub.b.localhost", false},
			{"b.localhost", "xb.localhost", false}, {".", "a.localhost", false}, {"", "a.localhost",
				false}, {"a.localhost", "127.0.0.1", false},
		} {
			arn := arnOf("acme", "t")
			o := executor.Options{
				HTTPAllow: loopback, Resolver: names, Secrets: vault{arn: signingKey, "hosts of " + arn: c.tag},
			}
			before := len(tg.requests())
			raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(payload, "http://"+c.host+":"+tg.port()+"/", arn)))
			if c.sent {
				requireResult(t, raw, err)
				continue
			}
			f := requireFailure(t, err, executor.CodeSecret, true)
			if !strings.Contains(f.Message, field) || !strings.Contains(f.Message, "punctual:hosts") ||
				len(tg.requests()) != before {
				t.Errorf("%s bound to %q, sent to %s: %q", field, c.tag, c.host, f.Message)
			}
		}
	}
}

// A partner's answer that looks like the ARN of a secret is sent on as the text that it is.
//
//proof:of F69
func TestHTTP_SendsWhatAnExpressionRenderedAsText(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	http := httpOf(executor.Options{HTTPAllow: loopback, Secrets: vault{
		arnOf("acme", "token"): "t0p-secret", arnOf("acme", "hook"): signingKey,
	}})
	w := work(fmt.Sprintf(`{"url":%q,"headers":{"X-Correlation":%q,"X-Key":%q},"auth":{"bearer":%q},"sign_with":%q}`,
		tg.URL, arnOf("acme", "token"), arnOf("acme", "token"), arnOf("acme", "token"), arnOf("acme", "hook")))
	rendered := map[string]bool{"headers.X-Correlation": true}
	w.Text = func(field string) bool { return rendered[field] }
	raw, err := http.Run(t.Context(), w)
	requireResult(t, raw, err)
	h := tg.last(t).Header
	if h.Get("X-Correlation") != arnOf("acme", "token") {
		t.Errorf("the target received %q", h.Get("X-Correlation"))
	}
	if h.Get("X-Key") != "t0p-secret" || h.Get("Authorization") != "Bearer t0p-secret" ||
		h.Get("Webhook-Signature") == "" {
		t.Errorf("the secrets of the definition were not sent: %v", h)
	}
	for _, field := range []string{"auth.bearer", "sign_with"} {
		w.Text = func(f string) bool { return f == field }
		_, err := http.Run(t.Context(), w)
		requireFailure(t, err, executor.CodeSecret, true)
	}
	if n := len(tg.requests()); n != 1 {
		t.Errorf("%d requests went out", n)
	}
}
