package target_test

import (
	"net/netip"
	"testing"

	"punctual/shared/target"
)

//proof:of S38
func TestRefused_RefusesSpecialAddressesInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]", "fd00:ec2::23",
		"[::ffff:169.254.169.254]", "::ffff:a9fe:a9fe",
		"2130706433", "0x7f000001", "0X7F.1", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.0x1", "017700000001",
		"127.0.0.1.", "127.0.0.1..",
		"2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0", "0x", "0.0.0.0", "1", "255.255.255.255",
		"10.0.0.5", "10.5", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1", "100.64.0.1", "100.127.255.254",
		"192.0.0.8", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.7", "203.0.113.9",
		"224.0.0.1", "239.255.255.255", "240.0.0.1",
		"::", "[::1]", "::1%lo", "fe80::1%eth0", "[fe80::1%25eth0]", "fec0::1", "fc00::1", "fdff::1", "ff02::1",
		"::7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "100:0:0:1::1",
		"5f00::1",
		"2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
		"2002:7f00:1::", "2002:808:808::1",
		"2620:4f:8000::1", "3fff::1", "::ffff:0:7f00:1", "4000::1",
		"256.1.1.1", "1.2.3.4.5", "08.8.8.8", "8.8.8.0x", "0x1.08", "4294967296", "99999999999999999999999",
		"1.2.3.4.0x5", "::g", "1:2", "a:b",
	} {
		a, ok := target.ParseLiteral(host)
		if !ok {
			t.Errorf("%q was taken for a name", host)
			continue
		}
		if !target.Refused(a, nil) {
			t.Errorf("%q (%v) was not refused", host, a)
		}
	}
}

func TestRefused_AllowsPublicAddresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"8.8.8.8": "8.8.8.8", "1.1": "1.0.0.1", "134744072": "8.8.8.8", "0x08080808": "8.8.8.8",
		"010.010.010.010":        "8.8.8.8",
		"[2606:4700:4700::1111]": "2606:4700:4700::1111", "::ffff:8.8.8.8": "::ffff:8.8.8.8",
		"172.32.0.1": "172.32.0.1", "100.128.0.1": "100.128.0.1",
		"2001:200::1": "2001:200::1",
	} {
		a, ok := target.ParseLiteral(host)
		if !ok || a != netip.MustParseAddr(want) {
			t.Errorf("%q read as %v, %v; want %s", host, a, ok, want)
		}
		if target.Refused(a, nil) {
			t.Errorf("%q was refused", host)
		}
	}
}

func TestParseLiteral_LeavesNamesAlone(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"example.com", "localhost", "1.example", "127.0.0.1.nip.io", "0xg", "1e3", "a", "",
		".", "1.2.3.4.com.", "x.0x1z"} {
		if a, ok := target.ParseLiteral(host); ok {
			t.Errorf("%q was taken for the address %v", host, a)
		}
	}
}

func TestRefused_AllowsOnlyWhatAPrefixContains(t *testing.T) {
	t.Parallel()
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for addr, refused := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "::ffff:127.0.0.1": false, "::1": false,
		"10.0.0.1": true, "169.254.169.254": true, "64:ff9b::7f00:1": true, "2002:7f00:1::": true, "::127.0.0.1": true,
		"fe80::1%lo": true,
	} {
		if got := target.Refused(netip.MustParseAddr(addr), allow); got != refused {
			t.Errorf("%s: refused is %v, want %v", addr, got, refused)
		}
	}
	if !target.Refused(netip.Addr{}, []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"),
		netip.MustParsePrefix("::/0")}) {
		t.Error("the invalid address was let through by a prefix that contains everything")
	}
}

func TestRanges_ParsesOrNamesTheMistake(t *testing.T) {
	t.Parallel()
	got, err := target.Ranges([]string{"127.0.0.0/8", " ::1/128"})
	if err != nil || len(got) != 2 || got[1] != netip.MustParsePrefix("::1/128") {
		t.Errorf("read %v, %v", got, err)
	}
	if _, err := target.Ranges([]string{"127.0.0.1"}); err == nil {
		t.Error("an address without a length was taken for a range")
	}
}

//proof:of F34
func TestRefused_NeverAllowsLinkLocalAndMetadata(t *testing.T) {
	t.Parallel()
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"),
		netip.MustParsePrefix("169.254.169.254/32"), netip.MustParsePrefix("fd00:ec2::254/128")}
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.169.123", "0.0.0.0", "2852039166",
		"0251.0376.0251.0376",
		"::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254",
		"64:ff9b:1::169.254.169.254",
		"64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0", "2002:a9fe:a9fe::1",
		"2001:0:a9fe:a9fe::1", "2001::5601:5601", "2600::5efe:169.254.169.254",
		"fe80::1", "fe80::a9fe:a9fe%eth0", "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd00:ec2:ffff::1", "::",
	} {
		a, ok := target.ParseLiteral(host)
		if !ok || !a.IsValid() || !target.Refused(a, everything) {
			t.Errorf("%q (%v) was opened", host, a)
		}
	}
	for _, host := range []string{"10.0.0.1", "127.0.0.1", "::1", "fd00:ec3::1", "64:ff9b::10.0.0.1", "2002:808:808::1",
		"8.8.8.8", "2600::1"} {
		if a, _ := target.ParseLiteral(host); target.Refused(a, everything) {
			t.Errorf("%q (%v) was not opened", host, a)
		}
	}
}
