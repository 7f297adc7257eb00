package table

import (
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"punctual/shared/item"
)

// usage adds up what the answers say was consumed.
type usage struct {
	mu     sync.Mutex
	calls  int64
	tables map[string]item.Units
}

// Counts returns what this Table's calls have cost so far. Of a refused write DynamoDB says
// nothing; it is counted by the published rule, as a write of the item that stood in its way.
// All tries inside one call count as one.
func (t *Table) Counts() item.Counts {
	t.used.mu.Lock()
	defer t.used.mu.Unlock()
	return item.Counts{Tables: maps.Clone(t.used.tables), TableCalls: t.used.calls}
}

func (u *usage) call() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
}

func (u *usage) add(table string, more item.Units) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tables == nil {
		u.tables = map[string]item.Units{}
	}
	sum := u.tables[table]
	sum.Write += more.Write
	sum.IndexWrite += more.IndexWrite
	sum.Read += more.Read
	u.tables[table] = sum
}

func (u *usage) read(table string, c *types.ConsumedCapacity) {
	if c != nil {
		u.add(table, item.Units{Read: aws.ToFloat64(c.CapacityUnits)})
	}
}

func (u *usage) wrote(table string, c *types.ConsumedCapacity) {
	if c == nil {
		return
	}
	units := item.Units{Write: aws.ToFloat64(c.CapacityUnits)}
	for _, index := range c.GlobalSecondaryIndexes {
		units.IndexWrite += aws.ToFloat64(index.CapacityUnits)
	}
	units.Write -= units.IndexWrite // the sum covers both
	u.add(table, units)
}

func (u *usage) refused(table string, old item.Item) {
	u.add(table, item.Units{Write: float64(max(1, (old.Size()+1023)/1024))})
}
