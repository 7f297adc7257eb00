package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"punctual/shared/contract"
	"punctual/shared/job"
)

// says writes lines of an attempt's start, as a worker does.
func (b *bench) says(t *testing.T, start job.LogStart, lines ...string) {
	t.Helper()
	pages, text := job.LogPages{Start: start}, job.LogText{Head: strings.Join(lines, "")}
	for {
		w, ok := pages.Next(text, b.clock.at.Add(time.Hour))
		if !ok {
			return
		}
		if err := b.Store.Put(t.Context(), w.Write); err != nil {
			t.Fatal(err)
		}
		pages.Stored(w)
	}
}

// firstStart is the first start of a job's first attempt.
func (b *bench) firstStart(id string) job.LogStart {
	return job.LogStart{Key: b.key(id), Attempt: 1, Start: 1, Token: 7}
}

func TestGetAttemptLog_AnswersTheLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	path := "/v1/jobs/" + id + "/attempts/1/log"
	r := b.want(t, 200, "GET", path, "")
	if r.text != "" || r.header.Get("Punctual-Log-Next") != "0" {
		t.Errorf("the log of an attempt without lines is %q, up to %s", r.text, r.header.Get("Punctual-Log-Next"))
	}
	b.says(t, b.firstStart(id), "mark\n", "a\n", strings.Repeat("x", 900)+"\n")
	whole := b.want(t, 200, "GET", path, "")
	if len(whole.text) != 908 || whole.header.Get("Punctual-Log-Next") != "908" ||
		whole.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the log is %q, %v", whole.text, whole.header)
	}
	for _, from := range []int{0, 1, 5, 7, 907, 908, 5000} {
		r := b.want(t, 200, "GET", path+"?from="+strconv.Itoa(from), "")
		if want := whole.text[min(from, 908):]; r.text != want ||
			r.header.Get("Punctual-Log-Next") != strconv.Itoa(max(from, 908)) {
			t.Errorf("from %d: %d bytes up to %s", from, len(r.text), r.header.Get("Punctual-Log-Next"))
		}
	}
	b.says(t, job.LogStart{Key: b.key(id), Attempt: 1, Start: 2, Token: 9}, "mark 2\n")
	r = b.want(t, 200, "GET", path+"?from=908", "")
	more := b.want(t, 200, "GET", path+"?from="+r.header.Get("Punctual-Log-Next"), "")
	if r.text != "mark 2\n" || more.text != "" {
		t.Errorf("then comes %q, and then %q", r.text, more.text)
	}
}

func TestGetAttemptLog_RefusesBadInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		id + "/attempts/2/log":                           {404, "not_found"},
		id + "/attempts/0/log":                           {404, "not_found"},
		id + "/attempts/-1/log":                          {404, "not_found"},
		id + "/attempts/x/log":                           {404, "not_found"},
		id + "/attempts/99999999999999999999/log":        {404, "not_found"},
		"01MCC5RM00EV3ZJFPZ9CPBS9DK/attempts/1/log":      {404, "not_found"},
		"x/attempts/1/log":                               {404, "not_found"},
		id + "/attempts/1/log?from=-1":                   {400, "invalid_value"},
		id + "/attempts/1/log?from=1.5":                  {400, "invalid_value"},
		id + "/attempts/1/log?from=9007199254740992":     {400, "out_of_range"},
		id + "/attempts/1/log?from=99999999999999999999": {400, "invalid_value"},
		id + "/attempts/1/log?follow=26s":                {400, "out_of_range"},
		id + "/attempts/1/log?follow=soon":               {400, "invalid_value"},
		id + "/attempts/1/log?tail=5":                    {400, "unknown_field"},
	} {
		r := b.want(t, want.status, "GET", "/v1/jobs/"+path, "")
		found := r.str("code")
		if list, _ := r.body["errors"].([]any); len(list) > 0 {
			found = list[0].(map[string]any)["code"].(string)
		}
		if found != want.code {
			t.Errorf("%s: code %q, want %q", path, found, want.code)
		}
	}
}

func TestGetAttemptLog_IsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.says(t, b.firstStart(id), "mark\n")
	b.who.Tenant = "globex"
	b.want(t, 404, "GET", "/v1/jobs/"+id+"/attempts/1/log", "")
}

func TestGetAttemptLog_Follows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := waiting(t)
		id := b.post(t, `{"task":"echo","delay":"1h"}`)
		path := "/v1/jobs/" + id + "/attempts/1/log?follow=20s"
		ask := func(from string) (took time.Duration, r reply) {
			began := time.Now()
			r = b.want(t, 200, "GET", path+"&from="+from, "")
			return time.Since(began), r
		}
		if took, r := ask("0"); took != 20*time.Second || r.text != "" {
			t.Errorf("without a line it waited %v for %q", took, r.text)
		}
		time.AfterFunc(3*time.Second, func() { b.says(t, b.firstStart(id), "mark\n") })
		took, r := ask("0")
		if took < 3*time.Second || took > 4*time.Second || r.text != "mark\n" {
			t.Errorf("it waited %v for %q", took, r.text)
		}
		time.AfterFunc(3*time.Second, func() { b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "") })
		if took, r = ask(r.header.Get("Punctual-Log-Next")); took > 4*time.Second || r.text != "" {
			t.Errorf("at the end it waited %v for %q", took, r.text)
		}
		if took, _ = ask("5"); took != 0 {
			t.Errorf("after the end it waited %v", took)
		}
	})
}

func TestDeleteJob_EmptiesItsLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	b.want(t, 200, "POST", "/v1/jobs/"+id+"/cancel", "")
	b.says(t, b.firstStart(id), "mark\n", strings.Repeat("x", 5000)+"\n")
	b.want(t, 204, "DELETE", "/v1/jobs/"+id, "")
	text, _, err := b.Store.AttemptLog(t.Context(), b.key(id), 1, 0)
	if text != "" || err != nil {
		t.Errorf("left behind: %d bytes, %v", len(text), err)
	}
	i, err := b.World.Table().Get(t.Context(), job.LogRef(b.key(id), 1))
	if err != nil || i.Int(contract.AttrExpiresAt) > b.clock.at.Unix() {
		t.Errorf("the item stays: %v, %v", fmt.Sprint(i), err)
	}
}
