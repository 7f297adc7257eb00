package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

// over is a client of a handler, with short waits.
func over(t *testing.T, h http.HandlerFunc, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, append([]client.Option{client.WithBackoff(time.Millisecond, time.Millisecond)},
		options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail})
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestNew_RefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "punctual.example.com", "ftp://x", "http://", "http://a?b=c", "http://u:p@a"} {
		if _, err := client.New(url); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
}

func TestClient_CallsBelowThePathOfItsAddress(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/", "/v1", "/v1/", "/stage", "/stage/v1"} {
		var path string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path
			answer(w, 200, `{}`)
		}))
		c, err := client.New(server.URL + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Job(t.Context(), "j"); err != nil {
			t.Error(err)
		}
		want := "/v1/jobs/j"
		if strings.HasPrefix(suffix, "/stage") {
			want = "/stage/v1/jobs/j"
		}
		if path != want {
			t.Errorf("%q: %s, want %s", suffix, path, want)
		}
		server.Close()
	}
}

//proof:of 50
func TestClient_RepeatsOnlyWhatIsSafe(t *testing.T) {
	t.Parallel()
	get := func(ctx context.Context, c *client.Client) error { _, err := c.Job(ctx, "j"); return err }
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateJob(ctx, "", rest.JobRequest{Task: "echo"})
		return err
	}
	redrive := func(ctx context.Context, c *client.Client) error { _, err := c.RedriveJob(ctx, "j"); return err }
	cancel := func(ctx context.Context, c *client.Client) error { _, err := c.CancelJob(ctx, "j"); return err }
	edit := func(ctx context.Context, c *client.Client) error {
		_, err := c.PatchJob(ctx, "j", rest.JobPatchRequest{})
		return err
	}
	replace := func(ctx context.Context, c *client.Client) error {
		_, err := c.PutSchedule(ctx, "s", rest.ScheduleRequest{}, client.IfVersion(3))
		return err
	}
	try := func(ctx context.Context, c *client.Client) error {
		_, err := c.DryRunSchedule(ctx, "s", rest.ScheduleRequest{})
		return err
	}
	for _, x := range []struct {
		name   string
		call   func(context.Context, *client.Client) error
		status int
		after  string
		want   int32
	}{
		{"a get after 503", get, 503, "", 3},
		{"a get after 502", get, 502, "", 3},
		{"a get after 500", get, 500, "", 1},
		{"a get after 404", get, 404, "", 1},
		{"a get after 429 that says when", get, 429, "0", 1},
		{"a get after a quota", get, 429, "", 1},
		{"a create, which has a key", create, 503, "", 3},
		{"a redrive, which has none", redrive, 503, "", 1},
		{"a cancel, which changes nothing twice", cancel, 503, "", 3},
		{"a dry run, which writes nothing", try, 503, "", 3},
		{"an edit", edit, 503, "", 1},
		{"a put with If-Match", replace, 503, "", 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			c := over(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if x.after != "" {
					w.Header().Set("Retry-After", x.after)
				}
				refuse(w, x.status, "unavailable", "try again")
			}, client.WithRetries(2))
			if err := x.call(t.Context(), c); err == nil {
				t.Error("no error")
			}
			if n := calls.Load(); n != x.want {
				t.Errorf("%d requests, want %d", n, x.want)
			}
		})
	}
}

func TestClient_WaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := over(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			refuse(w, 429, "rate_limited", "slowly")
			return
		}
		answer(w, 202, `{"job_id":"j"}`)
	})
	start := time.Now()
	job, err := c.RedriveJob(t.Context(), "j") // refused, so it has done nothing: safe
	if err != nil || job.JobID != "j" {
		t.Errorf("%+v %v", job, err)
	}
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("it waited %v", waited)
	}
}

func TestClient_DoesNotBeginAWaitThatTheContextCuts(t *testing.T) {
	t.Parallel()
	c := over(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		refuse(w, 503, "unavailable", "later")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Job(ctx, "j"); !errors.Is(err, client.Unavailable) {
		t.Errorf("%v", err)
	}
	if ctx.Err() != nil {
		t.Error("it waited to the end")
	}
}

func TestClient_KeepsOneKeyOverRepetitions(t *testing.T) {
	t.Parallel()
	var keys, bodies []string
	c := over(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		text, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(text))
		if len(keys) < 3 {
			hijacked, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = hijacked.Close() // the network fails
			return
		}
		answer(w, 202, `{"job_id":"j"}`)
	})
	for range 2 {
		if _, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 4 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] || keys[2] == keys[3] {
		t.Errorf("keys %q", keys)
	}
	if strings.Count(strings.Join(bodies, ""), `"echo"`) != 4 {
		t.Errorf("bodies %q", bodies)
	}
}

func TestClient_AsksForATokenBeforeEachRequest(t *testing.T) {
	t.Parallel()
	var seen []string
	n := 0
	c := over(t, func(w http.ResponseWriter, r *http.Request) {
		if seen = append(seen, r.Header.Get("Authorization")); len(seen) == 1 {
			refuse(w, 503, "unavailable", "again")
			return
		}
		answer(w, 200, `{}`)
	}, client.WithTokenSource(func(context.Context) (string, error) { n++; return fmt.Sprint("t", n), nil }))
	if _, err := c.Job(t.Context(), "j"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []string{"Bearer t1", "Bearer t2"}) {
		t.Errorf("%q", seen)
	}
	broken := errors.New("no token today")
	c = over(t, func(http.ResponseWriter, *http.Request) { t.Error("a request without a token was sent") },
		client.WithTokenSource(func(context.Context) (string, error) { return "", broken }))
	if _, err := c.Job(t.Context(), "j"); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestClient_BoundsEachRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, began := 0, time.Now()
		silent := roundTrip(func(r *http.Request) (*http.Response, error) {
			calls++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c, err := client.New("http://punctual.test", client.WithHTTPClient(&http.Client{Transport: silent}),
			client.WithTimeout(5*time.Second), client.WithRetries(1), client.WithBackoff(time.Second, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Job(t.Context(), "j"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); calls != 2 || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("%d requests in %s, want 2 of 5 s and a wait of 1 s at most", calls, took)
		}
	})
}

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestError_SaysWhatIsNotPunctuals(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status     int
		kind, body string
		is         client.Code
		says       string
	}{
		{404, "text/html", "<html>nginx</html>", "", "is the address right?"},
		{200, "text/html", "<html>a wiki</html>", "", "is the address right?"},
		{403, "application/json", `{"message":"Forbidden"}`, client.Forbidden, "Forbidden"},
		{401, "application/json", `{"message":"Unauthorized"}`, client.Unauthenticated, "Unauthorized"},
	} {
		c := over(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", x.kind)
			w.WriteHeader(x.status)
			_, _ = io.WriteString(w, x.body)
		})
		_, err := c.Job(t.Context(), "j")
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Status != int64(x.status) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%d %s: %v", x.status, x.body, err)
		}
		if x.is != "" && !errors.Is(err, x.is) {
			t.Errorf("%v is not %s", err, x.is)
		}
		if errors.Is(err, client.NotFound) || errors.Is(err, client.Code("")) {
			t.Errorf("%v is a code that nobody said", err)
		}
	}
}

func TestCode_ListsEveryCodeOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := connect().Document(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct {
						Code struct{ Enum []string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("code.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := document.Components.Schemas.Problem.Properties.Code.Enum
	if len(codes) == 0 {
		t.Fatal("the document has no codes")
	}
	for _, code := range codes {
		if !strings.Contains(string(source), `Code = "`+code+`"`) {
			t.Errorf("there is no constant for %s", code)
		}
	}
	if n := strings.Count(string(source), `Code = "`); n != len(codes) {
		t.Errorf("%d constants for %d codes", n, len(codes))
	}
}

//proof:of F78
func TestClient_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		var elsewhere atomic.Int64
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		t.Cleanup(other.Close)
		asked := 0
		h := func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, other.URL, status)
		}
		c := over(t, h, client.WithToken("secret"), client.WithHTTPClient(&http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
		}))
		_, err := c.CreateJob(t.Context(), "", rest.JobRequest{Task: "echo"})
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != int64(status) ||
			!strings.Contains(e.Detail, "redirect, which was not followed") {
			t.Errorf("%d: %v", status, err)
		}
		if asked != 1 || elsewhere.Load() != 0 {
			t.Errorf("%d: asked %d times, and elsewhere %d times", status, asked, elsewhere.Load())
		}
	}
}

func TestClient_SendsATokenOverPlainHTTPToLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, sends := range map[string]bool{
		"http://localhost:8080": true, "http://127.0.0.1": true, "http://127.9.9.9:1": true, "http://[::1]:8080": true,
		"https://punctual.example.com": true, "http://punctual.example.com": false, "http://10.0.0.1": false,
		"http://localhost.example.com": false, "http://0.0.0.0": false,
	} {
		sent := ""
		c, err := client.New(address, client.WithToken("secret"), client.WithRetries(0),
			client.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				sent += r.Header.Get("Authorization")
				return nil, errors.New("no network")
			})}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Job(t.Context(), "x")
		if (sent == "Bearer secret") != sends || err == nil || !sends && !strings.Contains(err.Error(), "use https") {
			t.Errorf("%s was sent %q: %v", address, sent, err)
		}
	}
}

func TestClient_WaitsBeforeItRepeatsAWaitThatWasNotGranted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, err := client.New("http://localhost", client.WithHTTPClient(&http.Client{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				asked++
				w := httptest.NewRecorder()
				status := "QUEUED"
				if asked == 4 {
					status = "SUCCEEDED"
				} else {
					w.Header().Set("Retry-After", "2")
				}
				answer(w, 200, `{"job_id":"x","status":"`+status+`"}`)
				out := w.Result()
				out.Request = r
				return out, nil
			})}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if job, err := c.Wait(t.Context(), "x"); err != nil || job.Status != "SUCCEEDED" {
			t.Errorf("%v %v", job.Status, err)
		}
		if time.Since(start) != 6*time.Second {
			t.Errorf("it waited %v", time.Since(start))
		}
	})
}
