package client_test

import (
	"errors"
	"testing"
	"time"

	"punctual/shared/client"
	"punctual/shared/client/rest"
)

func TestClient_BackfillsASchedule(t *testing.T) {
	t.Parallel()
	c, ctx := connect(), t.Context()
	if _, err := c.PutSchedule(ctx, "client-backfill", rest.ScheduleRequest{
		Calendar: client.Cron("0 * * * *", ""), Job: &rest.JobTemplateRequest{Task: "echo"}}); err != nil {
		t.Fatal(err)
	}
	to := time.Now().Truncate(time.Hour)
	request := rest.BackfillRequest{From: to.Add(-3 * time.Hour), To: to, DryRun: new(true)}
	tried, err := c.Backfill(ctx, "", "client-backfill", request)
	if err != nil || tried.OperationID != nil || *tried.Matched != 3 {
		t.Fatalf("%+v %v", tried, err)
	}
	request.DryRun = nil
	o, err := c.Backfill(ctx, "client-backfill", "client-backfill", request)
	if err != nil || o.OperationID == nil {
		t.Fatalf("%+v %v", o, err)
	}
	same, err := c.Backfill(ctx, "client-backfill", "client-backfill", request)
	if err != nil || *same.OperationID != *o.OperationID {
		t.Errorf("%+v %v", same, err)
	}
	if _, err := c.ProceedOperation(ctx, *o.OperationID); !errors.Is(err, client.WrongState) {
		t.Errorf("%v", err)
	}
	if _, err := c.ResumeOperation(ctx, *o.OperationID); err != nil && !errors.Is(err, client.WrongState) {
		t.Error(err)
	}
	ended, err := c.WaitOperation(ctx, *o.OperationID)
	if err != nil || *ended.Status != rest.OperationViewStatusSUCCEEDED || ended.Done != 3 {
		t.Errorf("%+v %v", ended, err)
	}
	if _, err := c.PauseOperation(ctx, *o.OperationID); !errors.Is(err, client.WrongState) {
		t.Errorf("%v", err)
	}
	if _, err := c.StopOperation(ctx, *o.OperationID); !errors.Is(err, client.WrongState) {
		t.Errorf("%v", err)
	}
	read, err := c.Operation(ctx, *o.OperationID)
	if err != nil || read.Done != 3 {
		t.Errorf("%+v %v", read, err)
	}
	if !has(t, c.Operations(ctx), func(is rest.OperationView) bool { return *is.OperationID == *o.OperationID }) {
		t.Error("the operation is not listed")
	}
}
