package stack

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write infra/testdata/alarms.json anew")

// goldenAlarm is an alarm as integration/alarms reads it: a metric, or an expression over metrics.
type goldenAlarm struct {
	Name       string         `json:"name"`
	Pages      bool           `json:"pages"`           // it notifies the paging topic
	Quiet      bool           `json:"quiet,omitempty"` // it notifies no one
	Metrics    []goldenMetric `json:"metrics"`
	Expression string         `json:"expression,omitempty"`
	Threshold  float64        `json:"threshold"`
	Below      bool           `json:"below,omitempty"`
	Bad        float64        `json:"bad"`
	Of         float64        `json:"of"`
	Breaching  bool           `json:"breaching,omitempty"` // without a value it goes off
}

type goldenMetric struct {
	ID        string            `json:"id,omitempty"`
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Dims      map[string]string `json:"dims,omitempty"`
	Statistic string            `json:"statistic"`
	Period    float64           `json:"period"` // seconds
}

// goldenAlarms lists the alarms of a deployment that notify a person.
func (d *synthesized) goldenAlarms() (all []goldenAlarm) {
	for _, id := range sorted(d.template("watch").resources) {
		r := d.template("watch").resources[id]
		if r["Type"] != "AWS::CloudWatch::Alarm" {
			continue
		}
		p := r["Properties"]
		a := goldenAlarm{
			Name:  text(at(p, "AlarmName"))[len(d.settings.Prefix)+1:],
			Pages: bytes.Contains([]byte(compact(at(p, "AlarmActions"))), []byte("OnCall")),
			Quiet: at(p, "ActionsEnabled") == false, Below: at(p, "ComparisonOperator") == "LessThanThreshold",
			Breaching: at(p, "TreatMissingData") == "breaching",
		}
		a.Threshold, _ = at(p, "Threshold").(float64)
		a.Bad, _ = at(p, "DatapointsToAlarm").(float64)
		a.Of, _ = at(p, "EvaluationPeriods").(float64)
		metric := func(m any, id, statistic string, period any) {
			g := goldenMetric{ID: id, Namespace: text(at(m, "Namespace")), Name: text(at(m, "MetricName")),
				Statistic: statistic, Dims: map[string]string{}}
			g.Period, _ = period.(float64)
			for _, dim := range list(at(m, "Dimensions")) {
				g.Dims[text(at(dim, "Name"))] = text(at(dim, "Value"))
			}
			a.Metrics = append(a.Metrics, g)
		}
		if text(at(p, "MetricName")) != "" {
			metric(p, "", text(at(p, "Statistic"))+text(at(p, "ExtendedStatistic")), at(p, "Period"))
		}
		for _, m := range list(at(p, "Metrics")) {
			if e := text(at(m, "Expression")); e != "" {
				a.Expression = e
			} else {
				metric(at(m, "MetricStat.Metric"), text(at(m, "Id")), text(at(m, "MetricStat.Stat")),
					at(m, "MetricStat.Period"))
			}
		}
		all = append(all, a)
	}
	return all
}

// additional lists the alarms of a deployment that another one does not have.
func additional(d, other *synthesized) []goldenAlarm {
	has := other.goldenAlarms()
	return slices.DeleteFunc(d.goldenAlarms(), func(a goldenAlarm) bool {
		return slices.ContainsFunc(has, func(b goldenAlarm) bool { return a.Name == b.Name })
	})
}

// TestAlarms_AreThoseThatAreTried holds the file from which integration/alarms plays faults against the alarms.
func TestAlarms_AreThoseThatAreTried(t *testing.T) {
	t.Parallel()
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetIndent("", " ")
	if err := enc.Encode(map[string][]goldenAlarm{
		"dev": dev().goldenAlarms(), "prod": prod().goldenAlarms(), "held": held().goldenAlarms(),
		"search": additional(searching(), prod()),
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "infra/testdata/alarms.json")
	if *update {
		if err := os.WriteFile(path, body.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, body.Bytes()) {
		t.Errorf("the alarms differ from %s (%v); write it anew: go test ./infra/stack -run %s -update", path, err,
			t.Name())
	}
}
