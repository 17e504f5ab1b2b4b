package outbound_test

import (
	"net/netip"
	"testing"

	"github.com/spillway-dev/spillway/internal/outbound"
)

// The API server by its name protects the same addresses as by its address; a name that does not
// resolve protects all.
func TestANameOfTheAPIServerIsResolved(t *testing.T) {
	for _, host := range []string{"api.test", "34.118.224.1"} {
		own := &outbound.Own{Host: host}
		for address, want := range map[string]bool{"34.118.224.1": true, "34.118.7.7": true, "::ffff:34.118.224.1": true, "64:ff9b::2276:e001": true, "34.119.0.1": false, "8.8.8.8": false} {
			if got, err := own.Contains(t.Context(), netip.MustParseAddr(address)); err != nil || got != want {
				t.Errorf("%s at %s: %v, %v", address, host, got, err)
			}
		}
	}
	if _, err := (&outbound.Own{Host: "none.test"}).Contains(t.Context(), netip.MustParseAddr("8.8.8.8")); err == nil {
		t.Error("what is not known is permitted")
	}
	if got, err := (*outbound.Own)(nil).Contains(t.Context(), netip.MustParseAddr("8.8.8.8")); err != nil || got {
		t.Errorf("%v, %v", got, err)
	}
}

// A gate reaches no Service of the cluster, though its address is a public one, unless the host is named.
func TestAPublicAddressOfTheClusterIsPrivate(t *testing.T) {
	ask := func(hosts ...string) error {
		parsed, err := outbound.ParseHosts(hosts)
		if err != nil {
			t.Fatal(err)
		}
		network := outbound.Network{Hosts: parsed, Own: &outbound.Own{Host: "api.test"}}
		return outbound.Permits(&network, t.Context(), "shop", "api.test", netip.MustParseAddr("34.118.224.1"))
	}
	if err := ask(); err == nil {
		t.Error("it reaches the API server")
	}
	for _, host := range []string{"api.test", "34.118.224.1", "34.118.0.0/16"} {
		if err := ask(host); err != nil {
			t.Errorf("%s is named: %v", host, err)
		}
	}
}
