package price

// List prices in dollars, of one unit each.
const (
	WriteUnit      = 0.625 / 1e6         // DynamoDB on demand, a kilobyte written
	ReadUnit       = 0.125 / 1e6         // 4 kilobytes read consistently
	StoredGigabyte = 0.25                // DynamoDB, a gigabyte and month
	QueueRequest   = (0.40 + 0.10) / 1e6 // SQS standard, with the surcharge of fair queues
	TimerFired     = 1.00 / 1e6          // EventBridge Scheduler
	APIRequest     = 3.50 / 1e6          // API Gateway REST
	Invocation     = 0.20 / 1e6          // Lambda
	GigabyteSecond = 0.0000133334        // Lambda on ARM
	Machine        = 0.0725              // c7g.large, 2 vCPU and 4 GiB, an hour on demand
	AutoMode       = 1.12                // EKS Auto Mode on top of EC2, as a factor
)

// Slots is how many jobs one machine runs at once.
const Slots = 25

// Invoked holds assumptions: how many records one busy invocation of a function takes, and what it uses. A laptop
// cannot count them.
var Invoked = []struct {
	What    string
	Records float64
	MS, MiB float64
}{
	{"stream", 50, 40, 256}, {"status", 10, 40, 512},
}

// Functions returns what Lambda costs for one job of a request with so many, by assumption; 0: no request makes it.
func Functions(jobsPerRequest float64) float64 {
	sum := 0.0
	if jobsPerRequest > 0 { // the API, with 512 MB for 40 ms
		sum = (Invocation + 0.040*0.5*GigabyteSecond) / jobsPerRequest
	}
	for _, f := range Invoked {
		sum += (Invocation + f.MS/1000*f.MiB/1024*GigabyteSecond) / f.Records
	}
	return sum
}

// Units are what something takes of the services.
type Units struct {
	Write, Read, Queue, Timer float64
}

// Dollars returns what the units cost.
func (u Units) Dollars() float64 {
	return u.Write*WriteUnit + u.Read*ReadUnit + u.Queue*QueueRequest + u.Timer*TimerFired
}

// What a job takes, without requests to the API and calls of functions.
var (
	// Job is a job that is due later, has a small payload and succeeds at its first attempt. An attempt takes about as
	// much as a job.
	Job = Units{Write: 6, Read: 5, Queue: 6, Timer: 0.04}
	// Hour is an hour in which it runs: its heartbeats.
	Hour = Units{Write: 406, Read: 419}
)
