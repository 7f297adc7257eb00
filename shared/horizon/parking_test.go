package horizon

import "testing"

func TestParking_NamesItsTenant(t *testing.T) {
	t.Parallel()
	for _, key := range Parkings("acme.eu-1") {
		if tenant, ok := ParseParking(key); !ok || tenant != "acme.eu-1" {
			t.Errorf("%q is read as %q, %v", key, tenant, ok)
		}
	}
	for _, key := range []string{"2027-03-28T00:05#17", "parked#", "parked#acme", "parked##3", "parked#acme#x", ""} {
		if _, ok := ParseParking(key); ok {
			t.Errorf("%q passes for a parking place", key)
		}
	}
}
