package executor

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"punctual/shared/target"
	"punctual/shared/text"
)

// HTTP is the name of the executor, as tasks give it.
const HTTP = "http"

// HTTPPayload is what a job of the http executor sends, and where. An Authorization header gives
// way to Auth; a header whose value is a secret's ARN is sent with the secret; a body that is null
// is none.
type HTTPPayload struct {
	Method   string            `json:"method,omitempty" doc:"Method of the request; default: POST"`
	URL      string            `json:"url" format:"uri" doc:"URL with http or https, to a public address"`
	Headers  map[string]string `json:"headers,omitempty" doc:"Headers of the request by name"`
	Body     json.RawMessage   `json:"body,omitempty" doc:"Body of the request; a string is sent unchanged, any other value as JSON"`
	Auth     HTTPAuth          `json:"auth,omitempty" doc:"Credentials of the request"`
	SignWith string            `json:"sign_with,omitempty"`
}

// HTTPAuth is how a request of the http executor signs in.
type HTTPAuth struct {
	Bearer string `json:"bearer"`
}

// HTTPMethods are those that are sent. CONNECT and TRACE are no calls.
var HTTPMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// What servers and proxies commonly take.
const (
	maxURL         = 8 << 10
	maxHeaders     = 64
	maxHeaderBytes = 8 << 10
)

const headerNamePattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$"

var httpKind = Kind{
	Name: HTTP, BuiltIn: true, Payload: HTTPPayload{}, Check: checkHTTP, About: "calls a URL",
	Bounds: map[string]Fields{
		"HTTPPayload": {
			"method": {"enum": HTTPMethods},
			"url": {
				"format": "uri", "pattern": `^[Hh][Tt][Tt][Pp][Ss]?://[!-\[\]-~]+$`, "minLength": 1,
				"maxLength": maxURL,
			},
			"headers": {
				"maxProperties": maxHeaders, "propertyNames": Keywords{"pattern": headerNamePattern},
				"additionalProperties": Keywords{"maxLength": maxHeaderBytes,
					"pattern": `^[^\x00-\x08\x0a-\x1f\x7f]*$`},
			},
			"sign_with": secretKeywords("ARN of the secret that signs the request (Standard Webhooks)"),
		},
		"HTTPAuth": {"bearer": secretKeywords("ARN of the secret that is sent as the bearer token, over https only. " +
			"A secret with the tag punctual:hosts goes to those hosts only")},
	},
}

var (
	httpFields = fieldsOf[HTTPPayload]()
	authFields = fieldsOf[HTTPAuth]()
)

func secretKeywords(description string) Keywords {
	return Keywords{"format": "secret-arn", "pattern": SecretPattern, "minLength": 1, "description": description}
}

func checkHTTP(r Reader, v Value, s Site) {
	f := r.Object(v, httpFields)
	if f == nil {
		return
	}
	if v, ok := f["method"]; ok {
		r.OneOf(v, CodeInvalidValue, HTTPMethods)
	}
	if v, ok := f["auth"]; ok {
		auth := r.Object(v, authFields)
		if b, ok := auth["bearer"]; ok {
			sentSecret(r, b, s, inClear(r, f["url"], s.HTTPAllow))
		} else if auth != nil {
			r.Missing(v.Pointer, "bearer")
		}
	}
	checkRequest(r, f, v.Pointer, s)
}

// checkRequest checks what a call has besides its method, its body and its bearer token.
func checkRequest(r Reader, f map[string]Value, in string, s Site) {
	if v, ok := f["headers"]; ok {
		checkHeaders(r, v, s, inClear(r, f["url"], s.HTTPAllow))
	}
	if v, ok := f["sign_with"]; ok {
		secret(r, v, s)
	}
	if u, ok := f["url"]; !ok {
		r.Missing(in, "url")
	} else if text, ok := r.Text(u); ok {
		checkURL(r, u, text, s)
	}
}

// inClear says whether a secret that is sent to that URL could be read on its way. What is no
// URL is noted elsewhere.
func inClear(r Reader, v Value, allow []netip.Prefix) bool {
	text, ok := r.Peek(v)
	if !ok {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !target.OpenLoopback(u.Hostname(), allow)
}

// checkURL checks a target as far as its text goes; what a name resolves to is checked when connecting.
func checkURL(r Reader, v Value, text string, s Site) {
	const allowed = "an absolute http or https URL to a public address"
	refuse := func(detail string) { r.Violation(v.Pointer, CodeTargetRefused, allowed, detail) }
	invalid := func(detail string) { r.Violation(v.Pointer, CodeInvalidValue, allowed, detail) }
	if len(text) > maxURL {
		r.Violation(v.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d bytes", maxURL), "the URL is too long")
		return
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
		invalid("this cannot be read as a URL; it must be ASCII without spaces, other characters percent-encoded")
		return
	}
	switch {
	case u.Scheme == "":
		invalid("the URL has no scheme")
	case u.Scheme != "http" && u.Scheme != "https":
		refuse("only http and https are spoken")
	case u.User != nil:
		refuse("a URL must not carry a user or a password; use auth")
	case u.Opaque != "" || u.Hostname() == "":
		invalid("the URL has no host")
	case !validPort(u):
		invalid("the port is not one")
	case refusedHost(u.Hostname(), s.HTTPAllow):
		refuse("this address is not public: loopback, private, link-local, metadata and other special-purpose " +
			"addresses are not reached")
	case ownServer(u, s.OwnPorts):
		refuse("this is the port of Punctual itself, which jobs do not reach")
	}
}

// ownServer says whether a URL names one of our own ports on this machine. The unspecified
// address connects to loopback.
func ownServer(u *url.URL, ownPorts []uint16) bool {
	text := u.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || !slices.Contains(ownPorts, uint16(port)) {
		return false
	}
	if a, ok := target.ParseLiteral(u.Hostname()); ok {
		a = a.WithZone("").Unmap()
		return a.IsLoopback() || a.IsUnspecified()
	}
	return localName(u.Hostname())
}

// localName says whether a host's name means this machine wherever it means anything.
func localName(host string) bool {
	name := strings.TrimRight(strings.ToLower(host), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func validPort(u *url.URL) bool {
	if !strings.HasSuffix(u.Host, ":"+u.Port()) {
		return u.Port() == ""
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

func refusedHost(host string, allow []netip.Prefix) bool {
	if a, ok := target.ParseLiteral(host); ok {
		return target.Refused(a, allow)
	}
	if localName(host) {
		return !target.OpenLoopback(strings.TrimRight(strings.ToLower(host), "."), allow)
	}
	return false
}

var (
	headerName  = text.Pattern(headerNamePattern)
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e\x{80}-\x{10ffff}]*$`)
	// ours are set by the executor, hop-by-hop ones by the connection.
	oursExactly = []string{
		"host", "content-length", "idempotency-key", "connection", "keep-alive", "proxy-connection", "te", "trailer",
		"transfer-encoding", "upgrade", "expect",
	}
	oursByPrefix = []string{"webhook-", "punctual-", "proxy-"}
)

// ours says whether a header, in small letters, is one that a job cannot set.
func ours(name string) bool {
	return slices.Contains(oursExactly, name) ||
		slices.ContainsFunc(oursByPrefix, func(p string) bool { return strings.HasPrefix(name, p) })
}

func checkHeaders(r Reader, v Value, of Site, inClear bool) {
	if !r.IsObject(v, "an object of strings") {
		return
	}
	seen := map[string]bool{}
	bytes, secrets := 0, 0
	repeated := r.Repeated(v) // noted elsewhere
	for name, at := range r.Members(v) {
		if len(seen) > maxHeaders {
			break
		}
		lower := strings.ToLower(name)
		value, ok := r.Text(at)
		bytes += len(name) + len(value)
		switch {
		case !headerName().MatchString(name):
			r.Violation(at.Pointer, CodeInvalidValue, "letters, digits and - as in HTTP",
				"this is not the name of a header")
		case ours(lower):
			r.Violation(at.Pointer, CodeInvalidValue, "any header but those that Punctual or the connection sets",
				"the header %s is set by Punctual or by the connection", text.Quoted(name))
		case seen[lower] && !repeated(at):
			r.Violation(at.Pointer, CodeDuplicateField, "", "the header %s is given more than once", text.Quoted(name))
		case ok && namesSecret(value):
			sentSecret(r, at, of, inClear) // the worker puts the secret in its place
			secrets++
		case ok && !headerValue.MatchString(value):
			r.Violation(at.Pointer, CodeInvalidValue, "printable characters on one line",
				"the value of a header has control characters")
		}
		seen[lower] = true
	}
	const most = MaxSecrets - 2 // auth.bearer and sign_with may name one each
	if secrets > most {
		r.Violation(v.Pointer, CodeOutOfRange, fmt.Sprintf("at most %d headers that are secrets", most),
			"too many headers are secrets")
	}
	if len(seen) > maxHeaders || bytes > maxHeaderBytes {
		r.Violation(v.Pointer, CodeOutOfRange,
			fmt.Sprintf("at most %d headers of %d bytes together", maxHeaders, maxHeaderBytes),
			"there are too many headers, or too long ones")
	}
}
