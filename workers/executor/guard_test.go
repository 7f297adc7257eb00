package executor_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"punctual/shared/job"
	"punctual/workers/executor"
)

// resolver answers from a table, one answer after the other; the last one stays.
type resolver map[string][][]string

var resolverMu sync.Mutex

func (r resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	resolverMu.Lock()
	defer resolverMu.Unlock()
	answers, ok := r[strings.TrimSuffix(host, ".")]
	if !ok || len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		r[host] = answers[1:]
	}
	var addresses []netip.Addr
	for _, a := range answers[0] {
		addresses = append(addresses, netip.MustParseAddr(a))
	}
	return addresses, nil
}

// trap is a listener that must not be reached.
type trap struct {
	net.Listener
	touched atomic.Int64
}

func newTrap(t *testing.T, network, address string) *trap {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", address, err)
	}
	tr := &trap{Listener: l}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tr.touched.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		if n := tr.touched.Load(); n != 0 {
			t.Errorf("%s was connected to %d times", address, n)
		}
	})
	return tr
}

func (tr *trap) port() string {
	_, port, _ := net.SplitHostPort(tr.Addr().String())
	return port
}

// everywhere is a trap on every address of the machine: whatever spelling of loopback is dialled falls into it.
func everywhere(t *testing.T) *trap { return newTrap(t, "tcp", ":0") }

//proof:of 121 S38
func TestHTTP_ConnectsToNothingSpecialHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	tr := everywhere(t)
	for _, host := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "[fd00:ec2::254]", "[fd00:ec2::23]",
		"[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]",
		"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7f.1", "0177.0.0.1",
		"017700000001", "0x7f.0.0.0x1", "0", "0.0.0.0", "[::]", "[::1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1%25lo]",
		"[fe80::1%25lo]",
		"10.0.0.5", "172.16.0.1", "192.168.1.1", "100.64.0.1", "256.1.1.1", "１２７.0.0.1", "127。0。0。1",
		"localhost",
	} {
		for _, scheme := range []string{"http", "https"} {
			// The system's resolver on purpose: "localhost" has to be caught after DNS.
			_, err := httpOf(executor.Options{}).Run(t.Context(),
				work(fmt.Sprintf(`{"url":"%s://%s:%s/latest/meta-data/"}`, scheme, host, tr.port())))
			f := requireFailure(t, err, job.CodeTargetRefused, true)
			requireWithout(t, "the message", f.Message, "127.0.0.1")
		}
	}
}

func TestHTTP_JudgesWhatANameResolvesTo(t *testing.T) {
	t.Parallel()
	tr := everywhere(t)
	for _, address := range []string{
		"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1",
		"169.254.169.254", "fd00:ec2::254", "10.0.0.5", "172.31.0.2", "192.168.0.1", "100.64.0.1", "fe80::1%lo",
		"fc00::1", "224.0.0.1", "255.255.255.255",
	} {
		names := resolver{"inside.test": {{address}}}
		_, err := httpOf(executor.Options{Resolver: names}).Run(t.Context(),
			work(fmt.Sprintf(`{"url":"http://inside.test:%s/"}`, tr.port())))
		f := requireFailure(t, err, job.CodeTargetRefused, true)
		requireWithout(t, "the message", f.Message, address)
	}
}

func TestHTTP_IsNotFooledByANameThatChangesItsMind(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the next request has to look again
		ok(w, r)
	})
	tr := newTrap(t, "tcp", "127.0.0.2:"+tg.port())
	names := resolver{"rebind.test": {{"127.0.0.1"}, {"127.0.0.2"}}}
	http := httpOf(executor.Options{Resolver: names, HTTPAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	payload := fmt.Sprintf(`{"url":"http://rebind.test:%s/"}`, tr.port())
	raw, err := http.Run(t.Context(), work(payload))
	requireResult(t, raw, err)
	_, err = http.Run(t.Context(), work(payload))
	requireFailure(t, err, job.CodeTargetRefused, true)
}

func TestHTTP_TakesOfANamesAddressesOnlyTheAllowedOnes(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	newTrap(t, "tcp", "127.0.0.2:"+tg.port())
	only := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("127.0.0.3/32")}
	for _, addresses := range [][]string{
		{"127.0.0.2", "127.0.0.1"},
		{"127.0.0.3", "127.0.0.2", "127.0.0.1"}, // nothing listens on .3
		{"::ffff:127.0.0.2", "::ffff:127.0.0.1"},
	} {
		raw, err := httpOf(executor.Options{Resolver: resolver{"two.test": {addresses}}, HTTPAllow: only}).
			Run(t.Context(), work(fmt.Sprintf(`{"url":"http://two.test:%s/"}`, tg.port())))
		requireResult(t, raw, err)
	}
	// One allowed but silent, one refused: the silence is what a retry can mend.
	_, err := httpOf(executor.Options{Resolver: resolver{"two.test": {{"127.0.0.2", "127.0.0.3"}}}, HTTPAllow: only}).
		Run(t.Context(), work(fmt.Sprintf(`{"url":"http://two.test:%s/"}`, tg.port())))
	requireFailure(t, err, executor.CodeNetwork, false)
}

func TestHTTP_ReachesAnAllowedLiteralInAnySpelling(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, ok)
	for _, host := range []string{"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001",
		"[::ffff:127.0.0.1]"} {
		raw, err := httpOf(executor.Options{HTTPAllow: loopback}).Run(t.Context(),
			work(fmt.Sprintf(`{"url":"http://%s:%s/"}`, host, tg.port())))
		requireResult(t, raw, err)
	}
}

func TestHTTP_NeverCallsOurOwnPort(t *testing.T) {
	t.Parallel()
	tr := everywhere(t)
	port, _ := strconv.ParseUint(tr.port(), 10, 16)
	o := executor.Options{
		HTTPAllow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
		OwnPorts:  []uint16{uint16(port)},
		Resolver:  resolver{"me.test": {{"127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"}}},
	}
	for _, host := range []string{"127.0.0.1", "127.0.0.9", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]",
		"2130706433", "me.test"} {
		_, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":"http://%s:%s/v1/jobs"}`, host, tr.port())))
		requireFailure(t, err, job.CodeTargetRefused, true)
	}
	other := newTarget(t, ok)
	raw, err := httpOf(o).Run(t.Context(), work(fmt.Sprintf(`{"url":%q}`, other.URL)))
	requireResult(t, raw, err)
}
