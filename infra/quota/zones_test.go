package quota

import (
	"context"
	"errors"
	"strings"
	"testing"

	"punctual/infra/target"
)

// deployedFleet is an account with a fleet in zones.
type deployedFleet struct {
	Source
	zones []string
	err   error
}

func (s deployedFleet) Zones(_ context.Context, stack string) ([]string, error) {
	if stack != "p-fleet" {
		return nil, errors.New("asked for " + stack)
	}
	return s.zones, s.err
}

func TestMoved_RefusesOtherZonesThanTheFleetIsIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deployed string
		err      error
		in       string // named zones
		count    int
		says     string
	}{
		"nothing stands":     {"", nil, "us-east-1a us-east-1b", 2, ""},
		"the same":           {"us-east-1a us-east-1b", nil, "us-east-1b us-east-1a", 2, ""},
		"the region's first": {"us-east-1a us-east-1b", nil, "", 2, ""},
		"nobody may look":    {"", errors.New("denied"), "us-east-1a us-east-1b", 2, ""},
		"another":            {"us-east-1a us-east-1b", nil, "us-east-1a us-east-1c", 2, "zones=us-east-1a,us-east-1b"},
		"one more": {"us-east-1a us-east-1b", nil, "us-east-1a us-east-1b us-east-1c", 3,
			"make destroy STACKS=p-fleet"},
		"one more, not named":  {"us-east-1a us-east-1b", nil, "", 3, "the first 3 of the region"},
		"one less, not named":  {"us-east-1a us-east-1b us-east-1c", nil, "", 2, "the first 2 of the region"},
		"named, and were not":  {"us-east-1a us-east-1b", nil, "us-east-1a us-east-1b", 2, ""},
		"named others than it": {"us-east-1d us-east-1f", nil, "us-east-1a us-east-1b", 2, "us-east-1d, us-east-1f"},
	} {
		s := target.Settings{Prefix: "p", Fleet: target.Fleet{In: strings.Fields(c.in), Zones: c.count}}
		said := Moved(t.Context(), s, deployedFleet{zones: strings.Fields(c.deployed), err: c.err})
		if (said == nil) != (c.says == "") || said != nil && !strings.Contains(said.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, said, c.says)
		}
	}
}

func TestZones_AreThoseOfTheSubnets(t *testing.T) {
	t.Parallel()
	got, err := zonesIn([]byte(`<DescribeSubnetsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><subnetSet>
		<item><subnetId>a</subnetId><availabilityZone>us-east-1b</availabilityZone></item>
		<item><subnetId>b</subnetId><availabilityZone>us-east-1a</availabilityZone></item>
		<item><subnetId>c</subnetId><availabilityZone>us-east-1b</availabilityZone></item></subnetSet>
		</DescribeSubnetsResponse>`))
	if err != nil || strings.Join(got, " ") != "us-east-1a us-east-1b" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := zonesIn([]byte("<html>")); err == nil {
		t.Error("what is no answer has zones")
	}
}
