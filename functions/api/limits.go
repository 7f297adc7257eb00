package api

import (
	"strconv"
	"strings"
	"time"

	"punctual/functions/api/admin"
	forecastapi "punctual/functions/api/forecast"
	"punctual/functions/api/jobs"
	limitsapi "punctual/functions/api/limits"
	"punctual/functions/api/operations"
	"punctual/functions/api/rest"
	"punctual/functions/api/schedules"
	"punctual/functions/api/spec"
	"punctual/functions/engine/ahead"
	"punctual/functions/engine/notify"
	"punctual/functions/engine/show"
	"punctual/shared/audit"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/operation"
	"punctual/shared/schedule"
	"punctual/shared/schema"
	"punctual/shared/search"
	"punctual/shared/span"
	"punctual/shared/stats"
	"punctual/shared/text"
	"punctual/shared/usage"
	"punctual/shared/webhook"
)

// limits puts the limits into the texts of the OpenAPI document. Routes and struct tags name a limit as
// {=name}, so no limit is typed twice.
var limits = strings.NewReplacer(
	"{=ahead_years}", strconv.Itoa(rest.YearsAhead),
	"{=audit_changes}", strconv.Itoa(audit.MaxChanges),
	"{=batch_jobs}", strconv.Itoa(contract.MaxBatchJobs),
	"{=batch_mib}", strconv.Itoa(contract.MaxBatchBody>>20),
	"{=calm_default}", strconv.Itoa(forecastapi.CalmDefault),
	"{=calm_most}", strconv.Itoa(forecastapi.CalmMost),
	"{=catch_up_cap}", strconv.Itoa(schedule.DefaultCatchUp.Cap),
	"{=catch_up_after}", span.Format(schedule.DefaultAfter),
	"{=catch_up_window}", span.Format(schedule.DefaultCatchUp.Window),
	"{=dead_days}", spec.Days(contract.DeadKept),
	"{=dead_letter_attempts}", strconv.Itoa(jobs.DeadLetterAttempts),
	"{=default_pool}", contract.DefaultPool,
	"{=default_retry}", spec.RetryText(job.DefaultRetry),
	"{=default_timeout}", span.Format(contract.DefaultTimeout),
	"{=depth}", strconv.Itoa(contract.MaxDepth),
	"{=dry_run_days}", spec.Days(calendar.ComparedAhead),
	"{=dry_run_s}", text.InUnits(schedules.DryRunTime, time.Second, ""),
	"{=dry_run_listed}", strconv.Itoa(calendar.ComparedListed),
	"{=finished_days}", spec.Days(contract.FinishedKept),
	"{=forecast_days}", spec.Days(ahead.Span),
	"{=forecast_rows}", strconv.Itoa(ahead.MostRows/1000)+",000",
	"{=forecast_times}", strconv.Itoa(ahead.MostTimes/1_000_000)+" million",
	"{=cancel_s}", text.InUnits(contract.CancelCheckEvery+time.Second, time.Second, ""),
	"{=in_flight_read}", strconv.Itoa(show.InFlightRead),
	"{=item_kib}", strconv.Itoa(contract.MaxItem>>10),
	"{=key_hours}", text.InUnits(contract.IdempotencyKept, time.Hour, ""),
	"{=group_hours}", strconv.Itoa(search.Hours),
	"{=held_starts_s}", text.InUnits(admin.HeldStartsWithin, time.Second, ""),
	"{=idle_weekdays}", text.Spelled(schedules.MaxWeekly-1),
	"{=max_result}", text.Bytes(contract.MaxResult),
	"{=min_max_result}", text.Bytes(contract.MinMaxResult),
	"{=known}", strconv.Itoa(show.MaxKnown/1000)+",000",
	"{=job_limits}", strconv.Itoa(contract.MaxJobLimits),
	"{=limit_key}", strconv.Itoa(contract.MaxLimitKey),
	"{=limit_keys_read}", strconv.Itoa(limitsapi.KeysRead/1000)+",000",
	"{=limit_keys_shown}", strconv.Itoa(limitsapi.KeysShown),
	"{=limit_rate}", strconv.Itoa(contract.MaxRatePerSecond),
	"{=list_read}", text.SpelledTime(contract.MaxListRead, time.Second, "a second", "seconds"),
	"{=log_kib}", strconv.Itoa(contract.LogHead>>10),
	"{=log_s}", text.InUnits(contract.LogFlushAfter+time.Second, time.Second, ""),
	"{=move_days}", strconv.Itoa(calendar.MaxMoveDays),
	"{=stats_days}", spec.Days(stats.MaxRange),
	"{=stats_steps}", strconv.Itoa(stats.MaxSteps),
	"{=usage_days}", strconv.Itoa(usage.MaxDays),
	"{=usage_kept}", spec.Days(usage.Kept),
	"{=usage_values}", strconv.Itoa(usage.MaxValues),
	"{=usage_tag_bytes}", strconv.Itoa(usage.MaxTagBytes),
	"{=zone_rules_days}", strconv.Itoa(int(contract.MaxZoneRulesAge/(24*time.Hour))),
	"{=next_shown}", text.Spelled(schedules.NextShown),
	"{=operation_patch_kib}", strconv.Itoa(operations.MaxPatch>>10),
	"{=operation_errors}", strconv.Itoa(operation.MaxErrors),
	"{=operation_rows}", strconv.Itoa(operation.MaxRows/1_000_000)+",000,000",
	"{=operation_times}", strconv.Itoa(operation.MaxTimes/1000)+",000",
	"{=past_s}", text.InUnits(contract.PastAllowed, time.Second, ""),
	"{=payload_mib}", strconv.Itoa(contract.MaxPayload>>20),
	"{=pending_before}", strconv.Itoa(show.PendingBefore),
	"{=preview_count}", strconv.Itoa(contract.PreviewDefault),
	"{=preview_skipped}", strconv.Itoa(schedules.PreviewSkipped),
	"{=redrive_default}", strconv.Itoa(contract.RedriveDefault),
	"{=schema_kib}", strconv.Itoa(schema.MaxText>>10),
	"{=starts}", text.Spelled(contract.MaxTakeovers),
	"{=tag_key}", strconv.Itoa(contract.MaxTagKey),
	"{=tag_value}", strconv.Itoa(contract.MaxTagValue),
	"{=tags}", strconv.Itoa(contract.MaxTags),
	"{=unique_key}", strconv.Itoa(contract.MaxUniqueKey),
	"{=worker_gone_min}", text.InUnits(contract.WorkerGoneAfter, time.Minute, ""),
	"{=worker_seen_s}", text.InUnits(contract.WorkerSeenEvery, time.Second, ""),
	"{=webhooks}", strconv.Itoa(contract.MaxWebhooks),
	"{=webhook_tags}", strconv.Itoa(webhook.MaxTags),
	"{=webhook_age_s}", text.InUnits(notify.Age, time.Second, ""),
	"{=webhook_failing_days}", spec.Days(webhook.FailingMost),
	"{=waiters}", strconv.Itoa(show.MaxWaiters/1000)+",000",
)
