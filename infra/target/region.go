package target

// ZoneIDs lists the zones of a region in which EKS can be, by id, where it is not in all of them; nil
// where it is in each. An id means the same zone for everybody. In us-west-1 an account has two zones,
// and another account may have another two: see Zones.
func ZoneIDs(region string) []string {
	switch region {
	case "us-east-1": // not use1-az3
		return []string{"use1-az1", "use1-az2", "use1-az4", "use1-az5", "use1-az6"}
	case "ca-central-1": // not cac1-az3
		return []string{"cac1-az1", "cac1-az2", "cac1-az4"}
	}
	return nil
}

// Zones is how many zones of a region an account has for sure.
func Zones(region string) int {
	if region == "us-west-1" {
		return 2
	}
	return 3
}

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
