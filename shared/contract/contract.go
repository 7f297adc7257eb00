package contract

import "time"

// Limits of the lanes. DESIGN: each bound follows from what carries the lane.
const (
	NowLane    = 2 * time.Second  // due this soon, the row's writer sends the firing itself
	DirectLane = 14 * time.Minute // an SQS message can be delayed 15 min; one minute is for the way
	Horizon    = 30 * time.Minute // what is due later stays in the table only
	NearMargin = 2 * time.Minute  // rows this much beyond the horizon count as near, for promoter passes in between
	TimerLead  = 2 * time.Minute  // a slice's timer fires anywhere within its minute, so it is set this early
	TimerGuard = 70 * time.Second // nearer than this a timer could be past when made; a delayed message takes its place
	AfterDue   = time.Millisecond // a wake-up this much after due: its firing goes another way than by its slice
	DelayLead  = 2 * time.Second  // a delayed firing arrives this early; the worker holds it
	MaxDelay   = 15 * time.Minute // SQS DelaySeconds limit
	// ReportsBehind is how long a report waits where there is a backlog: then what still waits is settled
	// before the children of nodes are released.
	ReportsBehind = 5 * time.Second

	Grace       = 3 * time.Minute  // a slice this far behind is swept
	MaxPostpone = 48 * time.Minute // the sweeper's doubling stops here
	RetryEvery  = 15 * time.Minute // what could not be handled, or not even read, is retried after this
)

// Passed slices are read once more: watermarks are hints, and an index entry may appear late.
const (
	RereadEachPass = 10 * time.Minute
	RereadHourly   = 24 * time.Hour
)

// DueAheadMost is how many jobs of a pool may be due within the horizon before an alarm rings. The look ahead counts
// somewhat further.
const DueAheadMost = 500_000

// Claims.
const (
	Lease          = 30 * time.Second // how long a worker owns an attempt without a heartbeat
	HeartbeatEvery = 10 * time.Second // a job shorter than this needs no heartbeat
	// CancelCheckEvery is how often a worker looks for a cancel between the heartbeats of an attempt. With the time of
	// a write and the lag of an eventually consistent read, a running handler hears of a cancel within 5 s.
	CancelCheckEvery = 4 * time.Second
	SkewMargin       = 5 * time.Second        // clocks may differ by this much
	RowMaxAge        = 2 * time.Second        // a row read longer ago than this is read once more before the start
	HoldUntil        = 500 * time.Millisecond // held in memory until this long before due, then claimed
	MaxTakeovers     = 5                      // more owners than this of one attempt: poison
	UnknownTaskFor   = time.Hour              // how long other workers may take to know a task
	ClaimKept        = 30 * 24 * time.Hour    // a claim is kept this long after its job's due time and lease
	EffectiveAfter   = 2 * time.Second        // a pause or delete is effective this long after its answer
)

// Workers note that they work, each with a put of one small item.
const (
	// WorkerSeenEvery is how often: 86,400 write units in a month for each worker and pool.
	WorkerSeenEvery = 30 * time.Second
	// WorkerGoneAfter is how long a worker is listed that notes nothing any more: three notes may fail.
	WorkerGoneAfter = 2 * time.Minute
	// WorkerKept is after how long the table may forget such a note.
	WorkerKept = time.Hour
)

// Reports. A worker flushes them at whichever comes first.
const (
	ReportFlushEvery = 100 * time.Millisecond
	ReportFlushNodes = 2 * time.Millisecond // the end of a node: its children wait for it
	ReportFlushJobs  = 50
)

// Logs of attempts. A worker writes new lines once the oldest of them is LogFlushAfter old, so that readers are at most
// 10 s behind with the time of the write and of a read.
const (
	LogFlushAfter = 9 * time.Second
	LogHead       = 32 << 10 // first bytes of a start's lines that are kept
	LogTail       = 32 << 10 // last bytes that are kept
	MaxLogLine    = 8 << 10  // bytes of one line
)

// Dead letters.
const (
	DeadLetterVisibility    = 60 * time.Second
	DeadLetterMaxReceives   = 3
	DeadLetterCameBackAfter = 15 * time.Second // SentTimestamp − sent_at beyond this: an operator redrove it
	DeadLetterKept          = 14 * 24 * time.Hour
	// What was brought back or deleted by REST is taken out of the DLQ in one go through it, after
	// LettersCollectedAfter. Each letter is looked at once in a go, so it is out of sight for LettersHidden.
	LettersCollectedAfter = 15 * time.Second
	LettersHidden         = 40 * time.Second
	LettersCollecting     = 6 * time.Second // of the function's ten; then comes the next of
	LettersRounds         = 4
	FiringMaxReceives     = 50 // far above what returned messages and drains cause
)

// HealthPort is where a worker in the cluster answers GET /live and /ready.
const HealthPort = 8081

// AuditDays is how many days an entry of the audit is kept, unless a deployment says otherwise.
const AuditDays = 400

// Retention.
const (
	FinishedKept = 30 * 24 * time.Hour
	DeadKept     = 90 * 24 * time.Hour // outlives the DLQ's 14 days
	// NodeKept is how long what belongs to a node of a run is kept after the node's end: longer than the run can be
	// retried, which is DeadKept after its own end. While the run goes on, it is extended.
	NodeKept        = DeadKept + 30*24*time.Hour
	IdempotencyKept = 24 * time.Hour
	AuditKept       = AuditDays * 24 * time.Hour
	TombstoneKept   = 24 * time.Hour
)

// Limits of requests; a request beyond one gets 400 or 413 with the limit in the text.
const (
	MaxPayload        = 1 << 20 // bytes of JSON
	MaxBatchBody      = 1 << 20
	MaxBatchJobs      = 100
	MaxAfter          = 10                  // jobs that one may come after
	MaxBody           = MaxPayload + 64<<10 // a job including its payload
	MaxTags           = 10
	MaxSearchTags     = 3 // that one filter names
	MaxTagKey         = 64
	MaxTagValue       = 256
	MaxMetadata       = 2 << 10 // bytes of compact JSON
	MaxName           = 64
	MaxDepth          = 100
	MaxIdempotencyKey = 256
	MaxJobLimits      = 3   // limits of work that one job counts under
	MaxLimitKey       = 128 // characters of the key of a limit of work
	MaxLimitTemplate  = 1024
	MaxUniqueKey      = 256     // characters of the unique key of a job
	MaxWebhooks       = 20      // of a tenant
	MaxRunning        = 10_000  // jobs of a key that a limit of work lets run at a time
	MaxRateCount      = 100_000 // starts of a key in a window
	MaxRatePerSecond  = 500     // what one item of the table can count
	MinRatePer        = time.Second
	MaxRatePer        = 24 * time.Hour
	MaxAttempts       = 50
	MaxInitialDelay   = time.Hour
	MaxRetryDelay     = 24 * time.Hour
	MaxFactor         = 10.0
	MinTimeout        = time.Second
	MaxTimeout        = 12 * time.Hour
	MaxTimeoutLong    = 24 * time.Hour
	MinWindow         = time.Second              // start_within, expire_after
	MaxWindow         = 30 * 24 * time.Hour      // start_within, expire_after
	MaxAhead          = 2 * 366 * 24 * time.Hour // the API says "up to 2 years"; AddDate decides, this bounds
	PastAllowed       = 60 * time.Second
	MaxWait           = 25 * time.Second
	WaitingRetryAfter = 2 * time.Second  // of a request that did not wait because too many of its tenant do
	MaxHeaders        = 64 << 10         // bytes of a request's headers
	TaskStretch       = 15 * time.Minute // of ids: what is noted once for each task with jobs in it; never changes
	MaxListRead       = time.Second      // how long a page of a list searches for what its filters select
	ListDefault       = 50
	ListMax           = 200
	RedriveDefault    = 100
	RedriveMax        = 1000
	MaxRetryAfter     = time.Hour
	MinSnooze         = time.Second // a handler that snoozes for less would run in a loop
	MaxResult         = 256 << 10   // bytes of a result that is kept whole, and of an HTTP answer's body
	MinMaxResult      = 1 << 10     // least bytes that a task may lower that to
	MaxClaimResult    = 10 << 10    // bytes of a result that the claim carries; a larger one is an object
	MaxPreview        = 8 << 10     // bytes of what is shown of a result that is not kept
	MaxResultsRead    = 4 << 20     // bytes of results that one expression reads together
	MaxErrorMessage   = 1 << 10     // bytes of an error kept
	MaxErrorCode      = 64          // bytes of its code, which a handler may set
	MaxReason         = 256         // characters of a pause's reason
	MaxExclusions     = 200         // of one tenant
	ScheduleQuota     = 1000        // runs a minute of a tenant's schedules, each at its busiest and at least one
	PreviewDefault    = 5           // times of a preview without a count; the calendar bounds the count
	NamePattern       = `^[a-zA-Z0-9_-]{1,64}$`
	DurationPattern   = `^([0-9]+(ms|s|m|h|d))+$`
)

// Weight on a tenant's rate limit, in requests: what a request, or the release of a node, makes and writes counts
// besides the request itself. The largest batch counts as 75 requests and the largest payload as 65; a tenant that
// sends single jobs with payloads under 16 KiB notices nothing.
const (
	// JobsOfOneRequest is how many jobs weigh as much as a request. A batch stays ten times cheaper than single jobs.
	JobsOfOneRequest = 10
	// BytesOfOneRequest is how many bytes weigh as much as a request: 16 write units of the table.
	BytesOfOneRequest = 16 << 10
	// MaxReleaseOverdraft is up to which deficit of its tenant, in requests, a run still releases nodes that weigh
	// something. No request leaves a deficit as large as that, so requests never keep a run from going on; other runs
	// do.
	MaxReleaseOverdraft = 128
	// MaxRunPayloads bounds the payloads and lists of all nodes of a run that weigh something, in bytes: 16 of the
	// largest payloads, or 16 KiB for each of 1,000 items. Expressions can make a thousand times what a request has.
	MaxRunPayloads = 16 << 20
)

// Row budget: an update is billed by the row's size, in units of 1 KB.
const (
	MaxRow           = 1024
	MaxInlinePayload = 256
	MaxInlineResult  = 128
	MaxInlineError   = 80
	RowAttempts      = 2
	MaxItem          = 256 << 10 // larger contents go to the blob store by reference
)

// Sharding.
const (
	Partitions    = 32 // of a tenant's jobs; part of every job's key, so it never changes
	DefaultShards = 64 // slices of one minute; it only ever grows
	DeadShards    = 4
	ParkShards    = 8
	// DeliveryShards spread the deliveries to one webhook in the group index: each bears a thousand writes a second.
	DeliveryShards = 4
)

// Pools and priorities, in the order in which a worker polls them.
var (
	Pools      = []string{"short", "long"}
	Priorities = []string{"critical", "high", "normal", "low"}
)

// Defaults of a job.
const (
	DefaultPool    = "short"
	RunPool        = "run" // of rows that represent a run: dispatch begins it, and no worker polls for it
	DefaultTimeout = 30 * time.Second
)

// Queues, by logical name; a deployment's real names carry its prefix.
const (
	DispatchQueue = "dispatch"
	ReportQueue   = "report"
	RedriveQueue  = "redrive"
	BulkQueue     = "bulk"         // asks for operations on rows to be continued
	DeadLetters   = "dead-letters" // the DLQ of the redrive queue
	FiringDead    = "firing-dead"  // the DLQ of every firing queue, of dispatch, of report and of bulk
)

// FiringQueue names the queue of one pool and priority.
func FiringQueue(pool, priority string) string { return "firing-" + pool + "-" + priority }

// FiringQueues lists all firing queues, by pool and then by priority, critical first.
func FiringQueues() []string {
	var names []string
	for _, pool := range Pools {
		for _, priority := range Priorities {
			names = append(names, FiringQueue(pool, priority))
		}
	}
	return names
}

// Prefixes of the names of objects in the bucket: those of jobs expire by themselves.
const (
	JobBlobs      = "jobs/"
	ScheduleBlobs = "schedules/"
)

// ResultObjects is the pattern of the names of results among the objects of jobs: all that workers put.
const ResultObjects = JobBlobs + "*/result#*"

// StageVisibility is how long a message that a stage has received is hidden: six times the limit of
// its function, as Lambda requires.
const StageVisibility = 3 * time.Minute

// Queue holds the settings of a queue.
type Queue struct {
	Name        string
	Visibility  time.Duration // default, unless the receiver sets another
	Retention   time.Duration
	DeadLetter  string // logical name of its DLQ; "" for none
	MaxReceives int    // before a message moves there
}

// Queues lists every queue with its settings, DLQs first, so that it can be created in order.
func Queues() []Queue {
	day := 24 * time.Hour
	queues := []Queue{
		{Name: DeadLetters, Visibility: DeadLetterVisibility, Retention: DeadLetterKept},
		{Name: FiringDead, Visibility: DeadLetterVisibility, Retention: DeadLetterKept},
		{Name: RedriveQueue, Visibility: DeadLetterVisibility, Retention: 4 * day, DeadLetter: DeadLetters,
			MaxReceives: DeadLetterMaxReceives},
		{Name: DispatchQueue, Visibility: StageVisibility, Retention: 4 * day, DeadLetter: FiringDead, MaxReceives: 10},
		{Name: ReportQueue, Visibility: StageVisibility, Retention: 4 * day, DeadLetter: FiringDead, MaxReceives: 10},
		{Name: BulkQueue, Visibility: StageVisibility, Retention: 4 * day, DeadLetter: FiringDead, MaxReceives: 10},
	}
	for _, name := range FiringQueues() {
		queues = append(queues, Queue{Name: name, Visibility: Lease, Retention: 4 * day, DeadLetter: FiringDead,
			MaxReceives: FiringMaxReceives})
	}
	return queues
}

// MaxZoneRulesAge is the age at which the rules of time zones are old. IANA makes several releases a year, and
// governments change their clocks at a few weeks' notice.
const MaxZoneRulesAge = 120 * 24 * time.Hour
