package cluster

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/outbound"
)

// A kubeconfig of a tenant does not lead the hub to its own machine, to the credentials of
// its machine or to its Services, in whatever spelling.
func TestAddressesThatTheHubDoesNotConnectTo(t *testing.T) {
	services := &outbound.Own{Host: "10.96.0.1"}
	allowed := func(texts ...string) []netip.Prefix {
		parsed, err := ParseNetworks(texts)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	standard := Network{Own: services}
	for _, test := range []struct {
		address string
		network Network
		permits bool
	}{
		{"192.0.2.1:6443", standard, true},
		{"[2001:db8::1]:6443", standard, true},
		{"10.97.0.1:443", standard, true},
		{"10.96.7.7:443", standard, false},
		{"10.96.7.7:443", Network{Refused: allowed("10.96.0.0/16")}, false},
		{"192.0.2.1:6443", Network{Own: &outbound.Own{Host: "no-such-name.invalid"}}, false}, // unknown
		{"127.0.0.1:6443", standard, false},
		{"127.9.9.9:6443", standard, false},
		{"[::1]:6443", standard, false},
		{"[::ffff:127.0.0.1]:6443", standard, false},
		{"0.0.0.0:6443", standard, false},
		{"[::]:6443", standard, false},
		{"169.254.169.254:80", standard, false},
		{"[::ffff:169.254.169.254]:80", standard, false},
		{"[fe80::1%eth0]:80", standard, false},
		{"[fd00:ec2::254]:80", standard, false},
		{"224.0.0.1:80", standard, false},
		{"127.0.0.1:6443", Network{Allowed: allowed("127.0.0.0/8"), Own: services}, true},
		{"192.0.2.1:6443", Network{Allowed: allowed("127.0.0.1", "203.0.113.0/24")}, false},
		{"[::ffff:203.0.113.9]:6443", Network{Allowed: allowed("127.0.0.1", "203.0.113.0/24")}, true},
	} {
		if err := test.network.control(t.Context(), "tcp", test.address, nil); (err == nil) != test.permits {
			t.Errorf("%s with %+v: %v", test.address, test.network, err)
		}
	}
	err := standard.control(t.Context(), "tcp", "127.0.0.1:6443", nil)
	if got := cause(&net.OpError{Op: "dial", Err: err}); !strings.Contains(got, "--allow-cluster-addresses") {
		t.Errorf("%q does not say how to permit it", got)
	}
	if _, err := ParseNetworks([]string{"10.0.0.0/8", "example.test"}); err == nil {
		t.Error("a name is no network")
	}
}

// The network is asked for the address that a name resolves to, and the server is not
// reached.
func TestANameDoesNotLeadToARefusedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := func(server, more string) []byte {
		return []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "` + server + `"` + more + `}}], users: [{name: u, user: {token: t}}]}`)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		config, err := configOf(kubeconfig("https://"+host+":"+port, ""), &Network{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Dial(t.Context(), "tcp", host+":"+port); err == nil || !strings.Contains(err.Error(), "--allow-cluster-addresses") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := configOf(kubeconfig("https://192.0.2.1", `, proxy-url: "http://127.0.0.1:`+port+`"`), &Network{}); err == nil || !strings.Contains(err.Error(), "proxy") {
		t.Errorf("a proxy is refused: %v", err)
	}
}
