package jobs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"punctual/functions/api/rest"
	"punctual/functions/api/spec"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

const logPath = "/{id}/attempts/{n}/log"

func (s *Handler) logRoutes(on rest.Resource) {
	rest.Get(on, logPath, "getAttemptLog", "Read the log of an attempt", s.getLog, rest.Route{
		About: "Lines that the attempt has written: time, level, message and attributes. Of each start of the " +
			"attempt, which begins with a line that says so, the first {=log_kib} KiB and the last {=log_kib} KiB " +
			"are kept; a line says how many bytes between them are left out. An attempt without lines has an empty " +
			"log. While the attempt runs, the log is at most {=log_s} s behind. To follow it, repeat the request " +
			"with the value of Punctual-Log-Next as from, until the job shows that the attempt has ended and the " +
			"answer is empty.",
	})
	content := map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}
	s.Router.OpenAPI().Paths[on.Path+logPath].Get.Responses[strconv.Itoa(http.StatusOK)].Content = content
}

type logInput struct {
	ByID
	N       string `path:"n" doc:"Number of the attempt, from 1"`
	Follow  string `query:"follow" doc:"Maximum wait for a line after from. On timeout, and at once when the attempt has ended or too many requests of the tenant wait, the answer is empty" example:"20s"`
	From    string `query:"from" doc:"Position of the first byte of the answer, as Punctual-Log-Next gave it; default: 0, the beginning"`
	attempt int64
	from    int64
	most    time.Duration
}

// Prepare reads the parameters. A text that is no number is an attempt that does not exist.
func (in *logInput) Prepare(ctx context.Context, who tenant.Identity) (err error) {
	if err = in.ByID.Prepare(ctx, who); err != nil {
		return err
	}
	if in.attempt, err = strconv.ParseInt(in.N, 10, 64); err != nil || in.attempt < 1 {
		return rest.NoSuch("attempt")
	}
	if in.most, err = spec.ReadWait("follow", in.Follow); err != nil {
		return err
	}
	in.from, err = rest.ReadPosition("from", in.From, job.MaxLogPosition-1)
	return err
}

type logAnswer struct {
	ContentType string `header:"Content-Type" doc:"Media type of the log"`
	Next        int64  `header:"Punctual-Log-Next" doc:"Position after the answer, for from of the next request"`
	RetryAfter  string `header:"Retry-After" doc:"Seconds after which to repeat the request; it did not wait, because too many requests of the tenant already wait"`
	Body        []byte
}

func (s *Handler) getLog(ctx context.Context, who tenant.Identity, in *logInput) (*logAnswer, error) {
	out := &logAnswer{ContentType: "text/plain; charset=utf-8"}
	read := func() (done bool, err error) {
		r, err := s.row(ctx, in.Key)
		if err == nil && in.attempt > r.Attempt {
			err = rest.NoSuch("attempt")
		}
		if err != nil {
			return true, err
		}
		text, next, ended, err := s.Read.AttemptLog(ctx, r, in.attempt, in.from)
		out.Body, out.Next = []byte(text), next
		return ended || text != "", err
	}
	done, err := read()
	if err == nil && !done && in.most > 0 {
		out.RetryAfter, err = s.Await(ctx, who.Tenant, in.most, read)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
