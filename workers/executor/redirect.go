package executor

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"punctual/shared/job"
	"punctual/shared/target"
)

// maxRedirects is how many a request follows.
const maxRedirects = 5

// checkURL checks what can be checked without resolving a name.
func (g guard) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return never(job.CodeTargetRefused, "only http and https targets are called")
	case u.User != nil:
		return never(job.CodeTargetRefused, "a URL with a user name in it is not called")
	case u.Hostname() == "":
		return never(job.CodeTargetRefused, "the URL names no host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return never(job.CodeTargetRefused, "the URL's port is none")
		}
	}
	if address, ok := target.ParseLiteral(u.Hostname()); ok && target.Refused(address, g.allow) {
		return never(job.CodeTargetRefused, errRefused.Error())
	}
	return nil
}

// follow checks a redirect before it is followed, and takes out of the request what was meant
// for the first host only.
func (g guard) follow(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return never(CodeRedirects, "the target redirected more than "+strconv.Itoa(maxRedirects)+" times")
	}
	if err := g.checkURL(next.URL); err != nil {
		return redirected(err)
	}
	if changes(via[0], next) {
		return never(CodeRedirectChanges, changed(via[0], next))
	}
	next.Header.Del("Referer") // set by net/http; the URL before may hold a key
	left := !sameHost(via[0].URL, next.URL)
	for _, passed := range via {
		left = left || !sameHost(via[0].URL, passed.URL) // a way back does not give credentials back
	}
	for name := range next.Header {
		if left && !harmless[name] {
			next.Header.Del(name)
		}
	}
	return nil
}

// changes reports whether following a redirect would send another request than the payload asks for: after 301,
// 302 and 303, net/http makes a GET of every method but HEAD, and leaves the body out.
func changes(first, next *http.Request) bool {
	bodyless := next.Body == nil || next.Body == http.NoBody
	return next.Method != first.Method || bodyless && first.ContentLength != 0
}

// changed is the message for a redirect that is not followed because it changes the request. It names the new
// address without its query, which may hold a key.
func changed(first, next *http.Request) string {
	to := *next.URL
	to.RawQuery, to.Fragment, to.RawFragment = "", "", ""
	status := "a redirect"
	if next.Response != nil {
		status = strconv.Itoa(next.Response.StatusCode)
	}
	return "the target answered " + first.Method + " with " + status + " to " + to.String() +
		", and following that would send a GET without the body; call the new address, " +
		"or have the target answer 307 or 308, which keep method and body"
}

// redirected says of a refusal that it was not the URL of the payload that was refused.
func redirected(err error) error {
	var refused *Failure
	if errors.As(err, &refused) {
		return never(refused.Code, "the target redirected, and was not followed: "+refused.Message)
	}
	return err
}

// harmless headers may go to a host that the user did not name. Everything else that the user
// wrote may be a credential: "X-Api-Key" is one, and there is no end of such names.
var harmless = map[string]bool{
	"Accept": true, "Accept-Language": true, "Content-Type": true, "Content-Language": true, "Content-Encoding": true,
	"User-Agent": true, "Idempotency-Key": true, "Punctual-Job-Id": true, "Punctual-Attempt": true,
	"Punctual-Token":  true,
	"Punctual-Due-At": true, "Punctual-Nominal-At": true,
}

// sameHost says whether a redirect stays with the host that credentials were meant for: same
// name, same port. The step from http to https on their usual ports stays; the step back
// would show credentials on the network.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(strings.TrimSuffix(from.Hostname(), "."), strings.TrimSuffix(to.Hostname(), ".")) {
		return false
	}
	switch {
	case from.Scheme == to.Scheme:
		return port(from) == port(to)
	case from.Scheme == "http" && to.Scheme == "https":
		return port(from) == "80" && port(to) == "443"
	}
	return false
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
