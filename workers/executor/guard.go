package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"punctual/shared/target"
)

const (
	connectWithin = 10 * time.Second // over all addresses of a host
	tlsWithin     = 10 * time.Second
	maxAddresses  = 8        // of one host that are tried
	maxHeader     = 64 << 10 // bytes of an answer's header
	idleFor       = time.Minute
)

// errRefused says that the deployment does not let jobs reach an address. It does not say
// which: what a name resolves to on the inside is not the user's to know.
var errRefused = errors.New("the address is not one that jobs may reach")

// guard is the only way out to the network. It checks the address that is about to be
// connected to, after the name was resolved, so that a name that resolves differently the
// second time changes nothing.
type guard struct {
	allow    []netip.Prefix
	ownPorts []uint16
	resolver Resolver
}

// transport returns a transport whose every connection is made by the guard. Proxies are not
// used, whatever the environment says: a proxy would be connected to instead of the target,
// and would resolve the target's name out of our sight.
func (g guard) transport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    tlsWithin,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        idleFor,
		MaxResponseHeaderBytes: maxHeader,
		// No ResponseHeaderTimeout: how long an answer may take is the job's own timeout,
		// which can be hours; a peer that died is noticed by TCP keep-alive.
	}
}

// dial connects to the first address of the host that is allowed and answers.
func (g guard) dial(ctx context.Context, _, hostport string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	addresses, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}

	result := errRefused
	for i, address := range addresses {
		conn, err := g.dialOne(ctx, netip.AddrPortFrom(address, uint16(port)), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		if errors.Is(result, errRefused) && !errors.Is(err, errRefused) {
			result = err // the first that was allowed is the host's preferred address
		}
	}
	return nil, result
}

func (g guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, ok := target.ParseLiteral(host); ok {
		return []netip.Addr{address}, nil
	}
	addresses, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	return addresses[:min(len(addresses), maxAddresses)], nil
}

// dialOne gives one address its share of the time that is left.
func (g guard) dialOne(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if !to.IsValid() {
		return nil, errRefused
	}
	deadline, _ := ctx.Deadline() // set by dial
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
	defer cancel()
	// Control sees the address that the socket is about to connect to: there is nothing
	// between this check and the connection.
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return g.check(address) }}
	return dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(to.Addr().Unmap(), to.Port()).String())
}

// check checks the address and port of a connection.
func (g guard) check(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || target.Refused(to.Addr(), g.allow) || g.own(to) {
		return errRefused
	}
	return nil
}

// own says whether it is a port of ours on this machine.
func (g guard) own(to netip.AddrPort) bool {
	ip := to.Addr().Unmap()
	// The unspecified address connects to loopback.
	return (ip.IsLoopback() || ip.IsUnspecified()) && slices.Contains(g.ownPorts, to.Port())
}
