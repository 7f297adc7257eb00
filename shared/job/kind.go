package job

// Kind is what a row represents. Where it comes from is another question, which ScheduleRef and RedriveOf answer: jobs
// and runs can both come from a schedule.
type Kind string

// The kinds. A worker runs what is of the first three; the others end by what ends in their place.
const (
	KindJob    Kind = "job"    // a job of its own
	KindNode   Kind = "node"   // the job of a node of a run
	KindItem   Kind = "item"   // the job of one of a mapped node's items
	KindMapped Kind = "mapped" // a mapped node, whose items have jobs
	KindRun    Kind = "run"    // a run of a dag, whose nodes have jobs; the run has the row's id
)

// Kind returns what the row represents.
func (r *Row) Kind() Kind {
	switch {
	case r.IsMapped():
		return KindMapped
	case r.IsItem():
		return KindItem
	case r.InRun():
		return KindNode
	case r.StartsRun():
		return KindRun
	}
	return KindJob
}

// IsJob reports whether a worker runs what the row represents.
func (k Kind) IsJob() bool { return k != KindMapped && k != KindRun }

// StartsRun reports whether the row represents a run of a dag, and no job of its own.
func (d DagRef) StartsRun() bool { return d.Dag != "" }

// InRun reports whether the row is that of a node of a run, or of an item of a node.
func (n NodeRef) InRun() bool { return n.RunID != "" }

// IsItem reports whether the row is that of an item of a mapped node.
func (n NodeRef) IsItem() bool { return n.ItemNo > 0 }

// IsMapped reports whether the row represents a node with items, and no job of its own.
func (n NodeRef) IsMapped() bool { return n.Items > 0 }
