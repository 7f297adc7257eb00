package quota

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"punctual/infra/target"
)

// Zones returns the names of the zones in which a stack has subnets, sorted; none if it is not deployed.
func (a account) Zones(ctx context.Context, stack string) ([]string, error) {
	body, err := a.ec2(ctx, url.Values{"Action": {"DescribeSubnets"},
		"Filter.1.Name": {"tag:aws:cloudformation:stack-name"}, "Filter.1.Value.1": {stack}})
	if err != nil {
		return nil, fmt.Errorf("reading the zones of %s: %w", stack, err)
	}
	return zonesIn(body)
}

// zonesIn reads the zones of an answer of EC2 about subnets.
func zonesIn(answer []byte) ([]string, error) {
	var v struct {
		Zones []string `xml:"subnetSet>item>availabilityZone"`
	}
	if err := xml.Unmarshal(answer, &v); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	slices.Sort(v.Zones)
	return slices.Compact(v.Zones), nil
}

// Moved says why a deployed fleet cannot be deployed with the settings: CloudFormation would have to move subnets in
// which machines run, and fails half-way. It returns nil where nothing moves, or where the account cannot be asked.
func Moved(ctx context.Context, s target.Settings, a Source) error {
	fleet := s.Prefix + "-fleet"
	deployed, err := a.Zones(ctx, fleet)
	wants := slices.Sorted(slices.Values(s.Fleet.In))
	if err != nil || len(deployed) == 0 || slices.Equal(deployed, wants) ||
		len(wants) == 0 && len(deployed) == s.Fleet.Zones {
		return nil
	}
	to := strings.Join(wants, ", ")
	if to == "" {
		to = fmt.Sprint("the first ", s.Fleet.Zones, " of the region")
	}
	return fmt.Errorf("the fleet stands in the zones %s, and cannot be moved to %s: deploy with zones=%s, or delete "+
		"it before by make destroy STACKS=%s (jobs wait in their queues meanwhile)", strings.Join(deployed, ", "), to,
		strings.Join(deployed, ","), fleet)
}
