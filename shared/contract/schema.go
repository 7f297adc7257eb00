package contract

// Tables, by logical name; a deployment's real names carry its prefix.
const (
	Jobs      = "jobs"
	Claims    = "claims"
	Tasks     = "tasks" // task definitions, pauses, watermarks and settings
	Schedules = "schedules"
	Dags      = "dags"
	Runs      = "runs"
	Audit     = "audit"  // who changed what
	Search    = "search" // the index of jobs; only where it is asked for
)

// Indexes of the jobs table (due also on schedules and runs).
const (
	DueIndex   = "due"
	GroupIndex = "group"
	DeadIndex  = "dead"
)

// Key and index attributes. Every other attribute belongs to the package that encodes it.
const (
	AttrPK        = "pk"
	AttrJobID     = "job_id"
	AttrSK        = "sk"
	AttrWakeSlice = "wake_slice" // S: "<minute>#<shard>", or a parking place
	AttrWakeAt    = "wake_at"    // N: ms
	AttrTries     = "tries"      // N: how often in a row an entry of the due index was deferred and not handled
	AttrGroup     = "group_id"
	AttrGroupSort = "group_at"
	AttrDeadShard = "dead_shard" // S: "tenant#k"
	AttrDeadAt    = "dead_at"    // N: ms
	AttrExpiresAt = "expires_at" // N: s; the tables' TTL
	AttrNear      = "near"       // S "1": the stream consumer's filter
	AttrEntry     = "entry"      // S: an entry of the audit as JSON, which is also a line of the log group
	AttrSchema    = "schema_v"   // N: a row of a job has it, its contents do not; the filter of what follows the table
)

// StatsPartitions begins the partitions of the tasks table that count what became of jobs.
const StatsPartitions = "stats#"

// MaxUsageTags is by how many tags it is counted at most what jobs used.
const MaxUsageTags = 3

// UsagePartitions begins those that count what jobs used.
const UsagePartitions = "usage#"

// ContentMarks are the attributes of a row that may have items of its own: one of these, or an attempt
// after the first. The stream shows the consumer only such rows when the table lets them go.
var ContentMarks = []string{"payload_in", "result_in", "tagged"}

// FinalStatuses are the statuses of jobs that have ended: the filter of what announces events.
var FinalStatuses = []string{"SUCCEEDED", "DEAD", "CANCELLED", "SKIPPED", "EXPIRED"}

// AttrAttempt is the attribute of a row's attempt, from 1.
const AttrAttempt = "attempt"

// Index is one sparse secondary index.
type Index struct {
	Name       string
	PK, SK     string
	SKIsNumber bool
	Project    []string // besides the keys; nil is KEYS_ONLY
}

// Schema is one table.
type Schema struct {
	Name    string
	PK, SK  string // SK "" where there is none; both are strings
	Indexes []Index
	TTL     bool
	Stream  bool // a function reads its changes
	Shipped bool // its new items are also lines of a log group
	Remade  bool // it is made from another table, and anew if it is lost: it needs no backup
}

// Guarded are the tables that nothing runs by once they were restored, until an operator lifts that:
// those whose items wake up by themselves, and the claims, which say what has run.
var Guarded = []string{Jobs, Claims, Schedules, Runs}

// Schemas lists every table that each deployment has. Of the tables that jobs write to, jobs alone has a stream: AWS
// caps the write rate of tables that have one.
func Schemas() []Schema {
	due := Index{Name: DueIndex, PK: AttrWakeSlice, SK: AttrWakeAt, SKIsNumber: true,
		Project: []string{"version", "attempt", "pool", "priority", "due_at"}}
	return []Schema{
		{Name: Jobs, PK: AttrPK, SK: AttrJobID, TTL: true, Stream: true, Indexes: []Index{
			due,
			{Name: GroupIndex, PK: AttrGroup, SK: AttrGroupSort},
			{Name: DeadIndex, PK: AttrDeadShard, SK: AttrDeadAt, SKIsNumber: true},
		}},
		{Name: Claims, PK: AttrPK, TTL: true},
		{Name: Tasks, PK: AttrPK, SK: AttrSK, TTL: true},
		{Name: Schedules, PK: AttrPK, SK: AttrSK, TTL: true, Indexes: []Index{due}},
		{Name: Dags, PK: AttrPK, SK: AttrSK},
		{Name: Runs, PK: AttrPK, SK: AttrSK, TTL: true, Indexes: []Index{
			{Name: DueIndex, PK: AttrWakeSlice, SK: AttrWakeAt, SKIsNumber: true},
		}},
		{Name: Audit, PK: AttrPK, SK: AttrSK, TTL: true, Shipped: true},
	}
}

// AllSchemas lists every table, with the index of jobs, which not every deployment has: it is made from the jobs table,
// and made anew if it is lost.
func AllSchemas() []Schema {
	return append(Schemas(), Schema{Name: Search, PK: AttrPK, SK: AttrSK, TTL: true, Remade: true})
}

// SchemaOf returns the schema of a table, by logical name; false for an unknown one.
func SchemaOf(table string) (Schema, bool) {
	for _, s := range AllSchemas() {
		if s.Name == table {
			return s, true
		}
	}
	return Schema{}, false
}
