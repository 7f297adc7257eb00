package api

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/span"
	"punctual/shared/target"
	"punctual/shared/tenant"
)

func itoa(n int) string { return strconv.Itoa(n) }

// number reads what itoa wrote, 0 from anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// readPayload judges a payload by the rules that hold for all, by its executor's and by its
// task's schema, and returns it as it will be kept: compact JSON, nil for none.
func (s *stage) readPayload(ctx context.Context, r *reader, v value, given bool, pointer string, task job.Task, t tenant.ID, literals []string) ([]byte, error) {
	v.pointer = pointer + "/payload"
	if !given || r.doc.nodes[v.node].kind == kindNull {
		if task.Executor == job.ExecutorHTTP || task.Executor == job.ExecutorLambda {
			r.missing(pointer, "payload")
		}
		return nil, nil
	}
	before := len(r.wrong)
	payload := r.doc.compact(v.node)
	if len(payload) > contract.MaxPayload {
		r.mistake(v.pointer, codeTooLarge, fmt.Sprintf("at most %d bytes", contract.MaxPayload), "the payload has %d bytes", len(payload))
		return nil, nil
	}
	if r.depth(v.node) > contract.MaxDepth {
		r.mistake(v.pointer, codeOutOfRange, fmt.Sprintf("at most %d levels", contract.MaxDepth), "the payload is nested more than %d levels deep", contract.MaxDepth)
		return nil, nil
	}
	r.allDuplicates(v.node)
	switch task.Executor {
	case job.ExecutorHTTP:
		r.httpPayload(v, t, s.HTTPAllow, s.OwnPorts)
	case job.ExecutorLambda:
		r.lambdaPayload(v)
	case job.ExecutorEcho:
		r.echoPayload(v)
	}
	r.noSecrets(v, under(pointer, literals))
	if len(task.PayloadSchema) > 0 && len(r.wrong) == before {
		r.comparable(v.node)
	}
	if len(task.PayloadSchema) > 0 && len(r.wrong) == before {
		if err := s.schemas.judge(ctx, r, v, task.PayloadSchema, payload); err != nil {
			return nil, err
		}
	}
	return payload, nil
}

// under are the pointers of allow_literals, which within a batch are still those of the job.
func under(pointer string, literals []string) []string {
	absolute := make([]string, len(literals))
	for i, l := range literals {
		absolute[i] = pointer + l
	}
	return absolute
}

// comparable blames numbers that cannot be compared at a fair price.
func (r *reader) comparable(n int) {
	for i := n; i < int(r.doc.nodes[n].next) && len(r.wrong) < maxMistakes; i++ {
		if r.doc.nodes[i].kind == kindNumber && !comparable(string(r.doc.raw(i))) {
			r.mistake(r.doc.pointer(i), codeOutOfRange, comparableAllowed, "the number is too large, too long or too near to nothing to be judged by the task's payload_schema")
		}
	}
}

// depth is how many levels of arrays and objects a value has.
func (r *reader) depth(n int) int {
	deepest, level := 0, 0
	var ends []int32 // of the containers around
	for i := n; i < int(r.doc.nodes[n].next); i++ {
		for len(ends) > 0 && int32(i) >= ends[len(ends)-1] {
			ends, level = ends[:len(ends)-1], level-1
		}
		if k := r.doc.nodes[i].kind; k == kindArray || k == kindObject {
			ends, level = append(ends, r.doc.nodes[i].next), level+1
			deepest = max(deepest, level)
		}
	}
	return deepest
}

// HTTPPayload documents what the http executor takes.
type HTTPPayload struct {
	Method   string            `json:"method,omitempty" doc:"Default POST"`
	URL      string            `json:"url" format:"uri" doc:"http or https, to a public address"`
	Headers  map[string]string `json:"headers,omitempty"`
	Body     anything          `json:"body,omitempty" doc:"A string is sent as it is, anything else as JSON"`
	Auth     httpAuth          `json:"auth,omitempty"`
	SignWith string            `json:"sign_with,omitempty" doc:"ARN of the secret that signs the request (Standard Webhooks)"`
}

type httpAuth struct {
	Bearer string `json:"bearer" doc:"ARN of the secret that is sent as the bearer token, over https only. A secret with the tag punctual:hosts goes to those hosts only"`
}

var (
	httpFields  = namesOf[HTTPPayload]()
	authFields  = namesOf[httpAuth]()
	httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
)

// maxURL is what servers and proxies commonly take.
const maxURL = 8 << 10

func (r *reader) httpPayload(v value, t tenant.ID, allow []netip.Prefix, ownPorts []uint16) {
	f := r.object(v.node, v.pointer, httpFields)
	if f == nil {
		return
	}
	if v, ok := f["method"]; ok {
		r.oneOf(v, codeInvalidValue, httpMethods)
	}
	inClear := r.inClear(f["url"], allow)
	if v, ok := f["headers"]; ok {
		r.headers(v, t, inClear)
	}
	if v, ok := f["auth"]; ok {
		auth := r.object(v.node, v.pointer, authFields)
		if b, ok := auth["bearer"]; ok {
			r.secretSent(b, t, inClear)
		} else if auth != nil {
			r.missing(v.pointer, "bearer")
		}
	}
	if v, ok := f["sign_with"]; ok {
		r.secretOf(v, t)
	}
	if u, ok := f["url"]; !ok {
		r.missing(v.pointer, "url")
	} else if s, ok := r.text(u); ok {
		r.url(u.pointer, s, allow, ownPorts)
	}
}

// inClear says whether a secret that is sent to that URL could be read on its way. What is no
// URL is blamed elsewhere.
func (r *reader) inClear(v value, allow []netip.Prefix) bool {
	if v.pointer == "" || r.doc.nodes[v.node].kind != kindString {
		return false
	}
	u, err := url.Parse(r.doc.string(v.node))
	return err == nil && u.Scheme == "http" && !target.OpenLoopback(u.Hostname(), allow)
}

// url judges a target as far as its text goes; what a name resolves to is judged when connecting.
func (r *reader) url(pointer, s string, allow []netip.Prefix, ownPorts []uint16) {
	const allowed = "an absolute http or https URL to a public address"
	refuse := func(detail string, args ...any) { r.mistake(pointer, codeTargetRefused, allowed, detail, args...) }
	invalid := func(detail string) { r.mistake(pointer, codeInvalidValue, allowed, "%s", detail) }
	if len(s) > maxURL {
		r.mistake(pointer, codeOutOfRange, fmt.Sprintf("at most %d bytes", maxURL), "the URL is too long")
		return
	}
	u, err := url.Parse(s)
	if err != nil || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
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
	case refusedHost(u.Hostname(), allow):
		refuse("this address is not public: loopback, private, link-local, metadata and other special-purpose addresses are not reached")
	case ownServer(u, ownPorts):
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
	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e\x{80}-\x{10ffff}]*$`)
	// ours are set by the executor, hop-by-hop ones by the connection.
	oursExactly  = []string{"host", "content-length", "idempotency-key", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
	oursByPrefix = []string{"webhook-", "punctual-", "proxy-"}
)

// maxHeaders and maxHeaderBytes are what servers commonly take.
const (
	maxHeaders     = 64
	maxHeaderBytes = 8 << 10
)

func (r *reader) headers(v value, t tenant.ID, inClear bool) {
	if got := r.doc.nodes[v.node].kind; got != kindObject {
		r.mistake(v.pointer, codeInvalidValue, "an object of strings", "%s is given where an object belongs", got)
		return
	}
	seen := map[string]bool{}
	bytes := 0
	repeated := r.doc.repeated(v.node) // blamed elsewhere
	for name, n := range r.doc.members(v.node) {
		if len(seen) > maxHeaders {
			break
		}
		at := value{n, v.pointer + "/" + escapePointer(name)}
		lower := strings.ToLower(name)
		text, ok := r.text(at)
		bytes += len(name) + len(text)
		switch {
		case !headerName.MatchString(name):
			r.mistake(at.pointer, codeInvalidValue, "letters, digits and - as in HTTP", "this is not the name of a header")
		case slices.Contains(oursExactly, lower) || slices.ContainsFunc(oursByPrefix, func(p string) bool { return strings.HasPrefix(lower, p) }):
			r.mistake(at.pointer, codeInvalidValue, "any header but those that Punctual or the connection sets", "the header %s is set by Punctual or by the connection", quoted(name))
		case seen[lower] && !repeated[int32(n-1)]:
			r.mistake(at.pointer, codeDuplicateField, "", "the header %s is given more than once", quoted(name))
		case ok && strings.HasPrefix(text, "arn:") && strings.Contains(text, ":secretsmanager:"):
			r.secretSent(at, t, inClear) // the worker puts the secret in its place
		case ok && !headerValue.MatchString(text):
			r.mistake(at.pointer, codeInvalidValue, "printable characters on one line", "the value of a header has control characters")
		}
		seen[lower] = true
	}
	if len(seen) > maxHeaders || bytes > maxHeaderBytes {
		r.mistake(v.pointer, codeOutOfRange, fmt.Sprintf("at most %d headers of %d bytes together", maxHeaders, maxHeaderBytes), "there are too many headers, or too long ones")
	}
}

// LambdaPayload documents what the lambda executor takes.
type LambdaPayload struct {
	Function string   `json:"function" doc:"Name, name:alias, or ARN; the function's tag punctual:tenant must allow the tenant"`
	Input    anything `json:"input,omitempty"`
}

var (
	lambdaFields   = namesOf[LambdaPayload]()
	lambdaFunction = regexp.MustCompile(`^(arn:aws[a-z-]*:lambda:[a-z0-9-]+:\d{12}:function:)?[a-zA-Z0-9_-]{1,64}(:(\$LATEST|[a-zA-Z0-9_-]{1,128}))?$`)
)

func (r *reader) lambdaPayload(v value) {
	f := r.object(v.node, v.pointer, lambdaFields)
	if f == nil {
		return
	}
	if fn, ok := f["function"]; !ok {
		r.missing(v.pointer, "function")
	} else if s, ok := r.text(fn); ok && !lambdaFunction.MatchString(s) {
		r.mistake(fn.pointer, codeInvalidValue, "the name of a function, name:alias, or its ARN", "this is not a Lambda function")
	}
}

// maxFails is more attempts than a job can have.
const maxFails = 1 << 30

// echoPayload judges the two fields that echo understands; anything else it repeats.
func (r *reader) echoPayload(v value) {
	for name, n := range r.doc.members(v.node) {
		at := value{n, v.pointer + "/" + name}
		switch name {
		case "sleep":
			r.sleep(at)
		case "fail":
			r.whole(at, 0, maxFails)
		}
	}
}

func (r *reader) sleep(v value) time.Duration {
	if r.bareSeconds(v) {
		return 0
	}
	s, ok := r.text(v)
	if !ok {
		return 0
	}
	d, err := span.Parse(s)
	if err != nil {
		r.mistake(v.pointer, codeInvalidValue, span.Allowed, "%s", err.Error())
	}
	return d
}
