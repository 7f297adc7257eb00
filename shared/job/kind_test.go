package job

import "testing"

func TestRow_HasAKind(t *testing.T) {
	t.Parallel()
	ofSchedule := ScheduleRef{ScheduleID: "s", Epoch: 1}
	for want, rows := range map[Kind][]Row{
		KindJob:    {{}, {ScheduleRef: ofSchedule}, {ScheduleRef: ScheduleRef{ManualOf: "s"}}, {RedriveOf: "A"}},
		KindRun:    {{ScheduleRef: ofSchedule, DagRef: DagRef{Dag: "d", DagVersion: 2}}},
		KindNode:   {{NodeRef: NodeRef{RunID: "R", Node: "n", Generation: 1}}},
		KindItem:   {{NodeRef: NodeRef{RunID: "R", Node: "n", Generation: 2, ItemNo: 1}}},
		KindMapped: {{NodeRef: NodeRef{RunID: "R", Node: "n", Generation: 1, Items: 3}}},
	} {
		for _, r := range rows {
			if got := r.Kind(); got != want {
				t.Errorf("a row with %+v %+v %+v is of kind %s, want %s", r.ScheduleRef, r.DagRef, r.NodeRef, got, want)
			}
		}
		if ran := want == KindJob || want == KindNode || want == KindItem; want.IsJob() != ran {
			t.Errorf("a worker runs a row of kind %s: %v", want, want.IsJob())
		}
	}
}
