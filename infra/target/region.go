package target

// Regions lists the regions of the commercial partition that have every service used here: EKS
// Auto Mode, EventBridge Scheduler, fair queues and Lambda on ARM.
func Regions() []string {
	return []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1",
		"eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2",
		"ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-south-2", "ap-southeast-1",
		"ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-east-1",
		"af-south-1", "me-central-1", "me-south-1", "il-central-1",
	}
}
