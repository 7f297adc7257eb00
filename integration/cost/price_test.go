package cost

// List prices of us-east-1 in dollars, without free tiers. Sources are named in the page.
const (
	writeUnit = 0.625 / 1e6 // DynamoDB on demand, a kilobyte written
	readUnit  = 0.125 / 1e6 // 4 kilobytes read consistently
	// The same by provisioned capacity, of which 70 % is used: $0.00065 and $0.00013 an hour.
	writeProvisioned = 0.00065 / 3600 / 0.7
	readProvisioned  = 0.00013 / 3600 / 0.7
	queueRequest     = (0.40 + 0.10) / 1e6 // SQS standard, with the surcharge of fair queues
	timerFired       = 1.00 / 1e6          // EventBridge Scheduler
	apiRequest       = 3.50 / 1e6          // API Gateway REST
	invocation       = 0.20 / 1e6          // Lambda
	gigabyteSec      = 0.0000133334        // Lambda on ARM
	logGigabyte      = 0.50
	hoursAMonth      = 730.0
	controlPlane     = 0.10      // EKS, an hour
	gateway          = 0.045     // NAT, an hour, without traffic
	address          = 0.005     // a public address, an hour; each gateway has one
	autoMode         = 1.12      // EKS Auto Mode on top of EC2
	burstable        = 0.0336    // t4g.medium, 2 vCPU and 4 GiB, an hour on demand
	machine          = 0.0725    // c7g.large, 2 vCPU and 4 GiB, an hour on demand
	diskMonth        = 0.08 * 80 // of a node of Auto Mode
	metricAsked      = 0.01 / 1e3
	alarmMonth       = 0.10
	metricMonth      = 0.30
	boardMonth       = 3.00
	keyMonth         = 1.00

	cognitoToken  = 0.00225 // a token of the client credentials flow
	cognitoClient = 6.00    // a client of that flow, a month
	recovery      = 0.20    // point-in-time recovery, a gigabyte of table and month
	objects       = 0.023   // S3, a gigabyte and month
	tableCopies   = 0.10    // AWS Backup of DynamoDB, a gigabyte and month
	objectCopies  = 0.05    // AWS Backup of S3, a gigabyte and month
)

// slots is how many jobs one machine runs at once.
const slots = 25

// logged is how many kilobytes of log one invocation writes: its start, its end and its report.
const logged = 0.4

// invoked holds assumptions: how many records one busy invocation takes, and what it uses. A laptop
// cannot count them.
var invoked = []struct {
	what    string
	records float64
	ms, mib float64
}{
	{"stream", 50, 40, 256}, {"status", 10, 40, 512},
}
