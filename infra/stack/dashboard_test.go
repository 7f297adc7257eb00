package stack

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// board reads a dashboard: its panels' titles, and all of its text. References to other stacks
// are in it as their JSON.
func board(t *testing.T, suffix string) (titles []string, body string) {
	t.Helper()
	prod().each("AWS::CloudWatch::Dashboard", func(_ template, _ string, r object) {
		if at(r, "Properties.DashboardName") != prod().settings.Prefix+suffix {
			return
		}
		switch b := at(r, "Properties.DashboardBody").(type) {
		case string:
			body = b
		case object:
			for _, piece := range list(at(b, "Fn::Join.1")) {
				if s, ok := piece.(string); ok {
					body += s
				} else {
					body += "REFERENCE"
				}
			}
		}
	})
	var parsed struct {
		Widgets []struct {
			Properties struct {
				Title string
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &parsed); err != nil {
		t.Fatalf("the board %q is no JSON: %v\n%s", suffix, err, body)
	}
	for _, w := range parsed.Widgets {
		titles = append(titles, w.Properties.Title)
	}
	return titles, body
}

// TestDashboard_ShowsTheExpectedPanels holds the panels that the person on call needs, by what
// they show.
//
//proof:of 166
func TestDashboard_ShowsTheExpectedPanels(t *testing.T) {
	t.Parallel()
	titles, body := board(t, "")
	if len(titles) < 10 || len(titles) > 20 {
		t.Errorf("%d panels are no screen: %q", len(titles), titles)
	}
	for what, pattern := range map[string]string{
		"jobs by outcome":          `outcome\} MetricName=\\"jobs_settled_total`,
		"start lateness p50":       `"start_lateness_ms","pool","short",\{[^}]*"stat":"p50"`,
		"start lateness p99":       `"start_lateness_ms","pool","long",\{[^}]*"stat":"p99"|"start_lateness_ms","pool","long"`,
		"due ahead":                `"due_ahead","pool","short"`,
		"backlog":                  `"ApproximateNumberOfMessagesVisible","QueueName","punctual-firing-long-low"`,
		"urgent jobs that wait":    `"urgent_lateness_ms","pool","short"`,
		"retries and firings":      `lane\} MetricName=\\"firings_sent_total`,
		"fired again":              `step\} MetricName=\\"swept_total`,
		"dead letters":             `"ApproximateNumberOfMessagesVisible","QueueName","punctual-dead-letters"`,
		"claims lost":              `"claims_lost_total"`,
		"claims taken over":        `"claims_taken_over_total"`,
		"promoter's watermark":     `"watermark_lag_ms","pass","promoted"`,
		"sweeper's watermark":      `"watermark_lag_ms","pass","swept"`,
		"throttles of tables":      `"WriteThrottleEvents","TableName","punctual-jobs"`,
		"throttles of the index":   `"GlobalSecondaryIndexName","due"`,
		"throttles of timers":      `"InvocationThrottleCount","ScheduleGroup","punctual"`,
		"slots wanted and busy":    `"slots_wanted","pool","short".*"slots_busy","pool","short"`,
		"error of the forecast":    `"forecast_error","pool","short"`,
		"spend per million":        `\$ per million jobs`,
		"failures of functions":    `"Errors","FunctionName","punctual-sweeper"`,
		"requests and their codes": `"5XXError","ApiName","punctual"`,
	} {
		if !regexp.MustCompile(pattern).MatchString(body) {
			t.Errorf("nothing shows %s (%s)", what, pattern)
		}
	}
}

//proof:of 166
func TestQueries_AskTheLogsForTenants(t *testing.T) {
	t.Parallel()
	byTenant := 0
	prod().each("AWS::Logs::QueryDefinition", func(_ template, id string, r object) {
		if len(list(at(r, "Properties.LogGroupNames"))) == 0 {
			t.Errorf("%s asks no log group", id)
		}
		if strings.Contains(text(at(r, "Properties.QueryString")), "by tenant_id") {
			byTenant++
		}
	})
	if byTenant != 3 {
		t.Errorf("%d queries ask by tenant; want 3", byTenant)
	}
}
