package executor

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"punctual/shared/clock"
	"punctual/shared/secret"
)

// callLog writes the lines of one call. They hold no body, no header and no query, any of which may be a secret.
type callLog struct {
	*slog.Logger
	from    time.Time
	clock   clock.Clock
	secrets *wallet // of the call; nil for none
}

func (l callLog) sent(req *http.Request) {
	l.Info("request sent", "method", req.Method, "url", l.address(req.URL))
}

func (l callLog) answered(req *http.Request, answer *http.Response) {
	level := slog.LevelInfo
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		level = slog.LevelWarn
	}
	args := []any{"status", answer.StatusCode, "took", l.took()}
	if last := answer.Request; last != nil && last.URL.String() != req.URL.String() {
		args = append(args, "redirected_to", l.address(last.URL))
	}
	l.Log(req.Context(), level, "answer received", args...)
}

// failed says that there was no whole answer. The message of a failure is our own.
func (l callLog) failed(err error) { l.Warn("no whole answer", "error", err.Error(), "took", l.took()) }

func (l callLog) took() time.Duration { return l.clock.Now().Sub(l.from).Round(time.Millisecond) }

// address is a URL without user and query.
func (l callLog) address(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	s := shown.String()
	if u.RawQuery != "" {
		s += "?…"
	}
	if l.secrets != nil {
		s = l.secrets.scrub(s)
	}
	return secret.Mask(nil, s)
}
