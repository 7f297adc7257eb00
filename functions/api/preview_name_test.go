package api_test

import "testing"

func TestSchedules_MayBeNamedPreview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(t, 404, "GET", "/v1/schedules/preview", "")
	b.want(t, 201, "PUT", "/v1/schedules/preview", daily)
	if got := b.want(t, 200, "GET", "/v1/schedules/preview", ""); got.str("name") != "preview" {
		t.Errorf("%s", got.text)
	}
	b.want(t, 200, "PATCH", "/v1/schedules/preview", `{"overlap":"skip"}`)
	b.want(t, 200, "GET", "/v1/schedules/preview/preview", "")
	b.want(t, 200, "POST", "/v1/schedules/preview", `{"calendar":{"cron":"0 9 * * *","timezone":"UTC"}}`) // a draft's
	b.want(t, 202, "POST", "/v1/schedules/preview/run-now", "")
	b.want(t, 200, "POST", "/v1/schedules/preview/pause", "")
	b.want(t, 204, "DELETE", "/v1/schedules/preview", "")
	if got := b.want(t, 405, "PUT", "/v1/jobs/batch", "{}"); got.header.Get("Allow") == "" {
		t.Errorf("%s", got.text)
	}
}

func TestPatchJob_TakesMergePatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.post(t, `{"task":"echo","delay":"1h"}`)
	got := b.want(t, 200, "PATCH", "/v1/jobs/"+id, `{"priority":"high"}`, "Content-Type", "",
		"Content-Type", "application/merge-patch+json")
	if got.str("priority") != "high" {
		t.Errorf("%s", got.text)
	}
	b.want(t, 415, "PATCH", "/v1/jobs/"+id, `{"priority":"low"}`, "Content-Type", "",
		"Content-Type", "application/json-patch+json")
}
