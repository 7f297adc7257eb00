package api

import (
	"strings"
	"time"

	"punctual/functions/api/wire"
	"punctual/shared/calendar"
	"punctual/shared/contract"
	"punctual/shared/job"
	"punctual/shared/schedule"
	"punctual/shared/schema"
	"punctual/shared/span"
	"punctual/shared/text"
)

// limits puts the limits into the texts of the OpenAPI document. Routes and struct tags name a limit as
// {=name}, so no limit is typed twice.
var limits = strings.NewReplacer(
	"{=ahead_years}", itoa(wire.YearsAhead),
	"{=batch_jobs}", itoa(contract.MaxBatchJobs),
	"{=batch_mib}", itoa(contract.MaxBatchBody>>20),
	"{=catch_up_cap}", itoa(schedule.DefaultCatchUp.Cap),
	"{=catch_up_after}", span.Format(schedule.DefaultAfter),
	"{=catch_up_window}", span.Format(schedule.DefaultCatchUp.Window),
	"{=dead_days}", days(contract.DeadKept),
	"{=dead_letter_attempts}", itoa(deadLetterAttempts),
	"{=default_pool}", contract.DefaultPool,
	"{=default_retry}", retryText(job.DefaultRetry),
	"{=default_timeout}", span.Format(contract.DefaultTimeout),
	"{=depth}", itoa(contract.MaxDepth),
	"{=dry_run_days}", days(dryRunAhead),
	"{=dry_run_listed}", itoa(dryRunListed),
	"{=finished_days}", days(contract.FinishedKept),
	"{=cancel_s}", wire.InUnits(contract.CancelCheckEvery+time.Second, time.Second, ""),
	"{=in_flight_looked}", itoa(inFlightLooked),
	"{=item_kib}", itoa(contract.MaxItem>>10),
	"{=key_hours}", wire.InUnits(contract.IdempotencyKept, time.Hour, ""),
	"{=held_starts_s}", wire.InUnits(heldStartsWithin, time.Second, ""),
	"{=idle_weekdays}", numberWord(maxWeekly-1),
	"{=max_result}", text.Bytes(contract.MaxResult),
	"{=min_max_result}", text.Bytes(contract.MinMaxResult),
	"{=known}", itoa(maxKnown/1000)+",000",
	"{=list_read}", timeInWords(contract.MaxListRead, time.Second, "a second", "seconds"),
	"{=move_days}", itoa(calendar.MaxMoveDays),
	"{=zone_rules_days}", itoa(int(contract.MaxZoneRulesAge/(24*time.Hour))),
	"{=next_shown}", numberWord(nextShown),
	"{=past_s}", wire.InUnits(contract.PastAllowed, time.Second, ""),
	"{=payload_mib}", itoa(contract.MaxPayload>>20),
	"{=pending_before}", itoa(pendingBefore),
	"{=preview_count}", itoa(contract.PreviewDefault),
	"{=preview_skipped}", itoa(previewSkipped),
	"{=redrive_default}", itoa(contract.RedriveDefault),
	"{=schema_kib}", itoa(schema.MaxText>>10),
	"{=starts}", numberWord(contract.MaxTakeovers),
	"{=tag_key}", itoa(contract.MaxTagKey),
	"{=tag_value}", itoa(contract.MaxTagValue),
	"{=tags}", itoa(contract.MaxTags),
)

func days(d time.Duration) string { return wire.InUnits(d, 24*time.Hour, "") }

// inWords lists words as a sentence does: "a", "a and b", "a, b and c".
func inWords(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// numberWord spells out a number up to ten; a larger one is in digits.
func numberWord(n int) string {
	words := strings.Fields("zero one two three four five six seven eight nine ten")
	if n < len(words) {
		return words[n]
	}
	return itoa(n)
}

// timeInWords is "a second" (one) or "five seconds".
func timeInWords(d, unit time.Duration, one, many string) string {
	if d == unit {
		return one
	}
	return numberWord(int(d/unit)) + " " + many
}

// retryText describes a retry policy in one line.
func retryText(p job.RetryPolicy) string {
	return itoa(p.MaxAttempts) + " attempts, " + span.Format(p.InitialDelay) + " × " + wire.PlainNumber(p.Factor) +
		" up to " + span.Format(p.MaxDelay) + ", jitter " + wire.PlainNumber(p.Jitter)
}
