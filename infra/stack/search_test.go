package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"punctual/shared/contract"
)

func TestSearch_IsASetting(t *testing.T) {
	t.Parallel()
	table := func(d *synthesized) (found object) {
		d.each("AWS::DynamoDB::GlobalTable", func(_ template, _ string, r object) {
			if at(r, "Properties.TableName") == d.settings.Prefix+"-"+contract.Search {
				found = r
			}
		})
		return found
	}
	if table(prod()) != nil {
		t.Error("without the setting there is a table")
	}
	made := table(searching())
	if made == nil {
		t.Fatal("with the setting there is no table")
	}
	replica := at(made, "Properties.Replicas.0")
	if made["DeletionPolicy"] != "Delete" || at(replica, "DeletionProtectionEnabled") == true ||
		at(replica, "PointInTimeRecoverySpecification") != nil {
		t.Errorf("what can be made anew is kept: %s", compact(made))
	}
	if at(made, "Properties.TimeToLiveSpecification.AttributeName") != contract.AttrExpiresAt ||
		at(made, "Properties.BillingMode") != "PAY_PER_REQUEST" {
		t.Errorf("%s", compact(made))
	}
}

func TestSearch_HasAConcurrencyOfItsOwn(t *testing.T) {
	t.Parallel()
	d := searching()
	if n := d.function(t, APISearch)["ReservedConcurrentExecutions"]; n != 50.0 {
		t.Errorf("%v are kept for searches", n)
	}
	if compact(d.function(t, APISearch)["Code"]) != compact(d.function(t, APIRead)["Code"]) {
		t.Error("it is not the program of the other reads")
	}
	if got := prod().settings.Flow.Searches; got != 0 {
		t.Errorf("without the index %d are kept", got)
	}
}

func TestSearch_IsFollowedWithinASecond(t *testing.T) {
	t.Parallel()
	if wait := sources(t, searching())[Changes]["MaximumBatchingWindowInSeconds"]; wait != 1.0 {
		t.Errorf("a call waits %v s for more changes", wait)
	}
	late := func(d *synthesized) bool {
		return slices.ContainsFunc(d.goldenAlarms(), func(a goldenAlarm) bool { return a.Name == "search-late" })
	}
	if !late(searching()) || late(prod()) {
		t.Errorf("with the index there is its alarm: %t; without: %t", late(searching()), late(prod()))
	}
}

func TestSearch_CostsTheAlarmsThatTheCostPageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "infra/cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	more := searching().alarmed() - prod().alarmed()
	if want := fmt.Sprintf("its alarms cost $%.2f in prod", 0.1*float64(more)); !strings.Contains(string(page), want) {
		t.Errorf("the page does not say that %s", want)
	}
}
