package run

import (
	"strconv"
	"time"

	"punctual/shared/contract"
	"punctual/shared/item"
)

// Weights is what the nodes of a run have drawn on the rate limit of its tenant: those that weigh something, each in
// its newest generation.
type Weights struct {
	Bytes int64 // of the payloads and lists of all these nodes
	nodes item.Item
}

// WeightsRef is where the weights of a run's nodes are.
func (k Key) WeightsRef() item.Ref { return k.ref("weights") }

// ReadWeights reads Weights from the item of WeightsRef.
func ReadWeights(i item.Item) Weights { return Weights{Bytes: i.Int("bytes"), nodes: i} }

// Has says whether a node, by number, has drawn in that generation.
func (w Weights) Has(no int, generation int64) bool {
	return w.nodes.Int(generationOf(no)) == generation
}

// With is how many bytes there are once a node has so many.
func (w Weights) With(no int, bytes int64) int64 { return w.Bytes + bytes - w.nodes.Int(bytesOf(no)) }

// Note notes that a node has drawn in that generation, for payloads of so many bytes. It is refused if another writer
// has noted the same node, or if the run would have more than most bytes.
func (w Weights) Note(k Key, no int, generation, bytes, most int64, now time.Time) item.Write {
	before := item.Cond{Attr: generationOf(no), Op: item.Missing}
	if old := w.nodes.Int(generationOf(no)); old > 0 {
		before.Op, before.Value = item.Eq, old
	}
	more := bytes - w.nodes.Int(bytesOf(no))
	return item.Write{
		Ref: k.WeightsRef(), Name: WriteNoteWeight, Add: map[string]int64{"bytes": more},
		Set: map[string]any{generationOf(no): generation, bytesOf(no): bytes, contract.AttrExpiresAt: keptFrom(now)},
		When: []item.All{
			{before, {Attr: "bytes", Op: item.Missing}},
			{before, {Attr: "bytes", Op: item.Le, Value: most - more}},
		},
	}
}

func generationOf(no int) string { return "n" + strconv.Itoa(no) }
func bytesOf(no int) string      { return "b" + strconv.Itoa(no) }
