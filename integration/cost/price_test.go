package cost

import "punctual/shared/price"

// List prices of us-east-1 in dollars, without free tiers. Sources are named in the page. Those that estimates of usage
// need as well are in package price.
const (
	writeUnit = price.WriteUnit
	readUnit  = price.ReadUnit
	// The same by provisioned capacity, of which 70 % is used: $0.00065 and $0.00013 an hour.
	writeProvisioned = 0.00065 / 3600 / 0.7
	readProvisioned  = 0.00013 / 3600 / 0.7
	queueRequest     = price.QueueRequest
	apiRequest       = price.APIRequest
	invocation       = price.Invocation
	gigabyteSec      = price.GigabyteSecond
	logGigabyte      = 0.50
	hoursAMonth      = 730.0
	controlPlane     = 0.10  // EKS, an hour
	gateway          = 0.045 // NAT, an hour, without traffic
	address          = 0.005 // a public address, an hour; each gateway has one
	autoMode         = price.AutoMode
	burstable        = 0.0336 // t4g.medium, 2 vCPU and 4 GiB, an hour on demand
	machine          = price.Machine
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

const slots = price.Slots

// logged is how many kilobytes of log one invocation writes: its start, its end and its report.
const logged = 0.4
