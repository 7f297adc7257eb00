package target

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// special holds IANA's special-purpose registries of IPv4 and IPv6, and multicast.
var special = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT; AWS uses it inside VPCs
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local: instance, task and pod metadata
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // IETF protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // AMT
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast

	"2001::/23",         // IETF protocol assignments: Teredo, ORCHID, benchmarking …
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: contains an IPv4 address
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

// neverOpened lists what no deployment can open: link-local addresses and AWS's metadata over IPv6
// give access to the credentials of the machine.
var neverOpened = prefixes(
	"0.0.0.0/8",      // connects to the machine itself
	"169.254.0.0/16", // link-local: metadata of instances, tasks and pods, time, DNS
	"fe80::/10",      // link-local
	"fd00:ec2::/32",  // metadata, time and DNS of AWS over IPv6
)

// globalUnicast is the part of IPv6 that is reachable from everywhere. Outside of it are loopback,
// IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard, segment routing, unique local
// (fd00:ec2:: is AWS's metadata), link- and site-local and multicast.
var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Ranges parses CIDRs, such as a deployment's http_allow.
func Ranges(cidrs []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(cidrs))
	for i, s := range cidrs {
		p, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, fmt.Errorf("reading the address ranges that are allowed: %w", err)
		}
		out[i] = p.Masked()
	}
	return out, nil
}

// Refused reports whether a job may not reach the address. An IPv4 address mapped into IPv6 counts
// as IPv4; a zone is ignored; the invalid address is refused. An address in one of allow is not
// refused, unless it is, or contains, an address that is never opened.
func Refused(a netip.Addr, allow []netip.Prefix) bool {
	a = a.WithZone("").Unmap()
	if !a.IsValid() {
		return true
	}
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if isNeverOpened(a) || slices.ContainsFunc(carried(a), isNeverOpened) {
		return true
	}
	if slices.ContainsFunc(allow, contains) {
		return false
	}
	return a.Is6() && !globalUnicast.Contains(a) || slices.ContainsFunc(special, contains)
}

// Prefixes of IPv6 that contain an IPv4 address.
var (
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible = netip.MustParsePrefix("::/96")
)

func isNeverOpened(a netip.Addr) bool {
	return slices.ContainsFunc(neverOpened, func(p netip.Prefix) bool { return p.Contains(a) })
}

// carried returns the IPv4 addresses that an IPv6 address may be translated or tunnelled to: NAT64
// in its prefixes of 32 to 96 bits, 6to4, Teredo, ISATAP, and ::a.b.c.d or ::ffff:0:a.b.c.d. Where
// a prefix is ambiguous, every reading counts.
func carried(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	four := func(at ...int) netip.Addr { return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]}) }
	last := four(12, 13, 14, 15)
	switch {
	case sixToFour.Contains(a):
		return []netip.Addr{four(2, 3, 4, 5)}
	case teredo.Contains(a): // the server's address, and the client's with inverted bits
		return []netip.Addr{four(4, 5, 6, 7), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case localNAT64.Contains(a): // RFC 6052: byte 8 is skipped
		return []netip.Addr{last, four(6, 7, 9, 10), four(7, 9, 10, 11), four(9, 10, 11, 12)}
	case nat64.Contains(a), translated.Contains(a), compatible.Contains(a) && !a.IsLoopback():
		return []netip.Addr{last}
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		return []netip.Addr{last}
	}
	return nil
}

// OpenLoopback reports whether a URL's host is this machine, by its address or as localhost, and
// the deployment allows that: such a request does not leave the machine.
func OpenLoopback(host string, allow []netip.Prefix) bool {
	if a, ok := ParseLiteral(host); ok {
		return a.WithZone("").Unmap().IsLoopback() && !Refused(a, allow)
	}
	name := strings.TrimRight(strings.ToLower(host), ".")
	if name != "localhost" && !strings.HasSuffix(name, ".localhost") {
		return false
	}
	return slices.ContainsFunc(loopbacks, func(a netip.Addr) bool { return !Refused(a, allow) })
}

// loopbacks are the addresses of localhost.
var loopbacks = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}

// ParseLiteral parses a URL's host that is an address, in any spelling that some resolver accepts:
// dotted, inet_aton's short, decimal, octal and hexadecimal forms, IPv6 with or without brackets
// and zone, trailing dots. False means that it is a name.
//
// A host that looks like a number but is no address for inet_aton ("256.1.1.1", "0x1.08") gives the
// invalid address, which [Refused] refuses: resolvers disagree about those.
func ParseLiteral(host string) (netip.Addr, bool) {
	host = strings.TrimRight(host, ".")
	if strings.Contains(host, ":") {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
		a, _ := netip.ParseAddr(host) // invalid on error: no name has a colon
		return a, true
	}
	parts := strings.Split(host, ".")
	if last := parts[len(parts)-1]; !numeric(last) {
		return netip.Addr{}, false
	}
	return aton(parts), true
}

// numeric reports whether a last label makes the host an address: no top-level domain is a number.
func numeric(label string) bool {
	if hex, ok := cutHex(label); ok {
		return strings.Trim(hex, "0123456789abcdefABCDEF") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func cutHex(s string) (digits string, ok bool) {
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return s[2:], true
	}
	return s, false
}

// aton implements inet_aton: one to four numbers, of which the last fills the remaining bytes.
func aton(parts []string) netip.Addr {
	if len(parts) > 4 {
		return netip.Addr{}
	}
	var v uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, ok := number(part)
		if !ok || n >= 1<<bits {
			return netip.Addr{}
		}
		v = v<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

func number(s string) (uint64, bool) {
	base := 10
	if hex, ok := cutHex(s); ok {
		s, base = hex, 16
	} else if len(s) > 1 && s[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(s, base, 33)
	return n, err == nil
}
