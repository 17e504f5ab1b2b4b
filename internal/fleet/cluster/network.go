package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/spillway-dev/spillway/internal/outbound"
)

// Network says which addresses the hub may connect to for a kubeconfig that a tenant has
// written. It is asked with the address that a name resolved to, when the connection is
// made, so that no name and no redirect leads elsewhere.
type Network struct {
	// Allowed are the only addresses, if there are any, also among those that are refused
	// otherwise.
	Allowed []netip.Prefix
	// Refused are the others that are refused, besides those of the machine itself and Own.
	Refused []netip.Prefix
	// Own are those of the hub's cluster.
	Own *outbound.Own
}

// metadata is where a provider serves credentials of machines outside of the link-local
// addresses.
var metadata = netip.MustParsePrefix("fd00:ec2::254/128")

// ParseNetworks reads networks such as 10.0.0.0/8, and single addresses.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var parsed []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor an address", text)
		}
		parsed = append(parsed, p.Masked())
	}
	return parsed, nil
}

// control refuses a connection before it is made, as the ControlContext of a [net.Dialer].
func (n *Network) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	permitted, err := n.permits(ctx, at.Addr().Unmap().WithZone(""))
	if err != nil {
		return fmt.Errorf("connect to %s, of which it is not known whether it is one of the hub's cluster: %w", at.Addr(), err)
	}
	if !permitted {
		return &refusedError{at.Addr()}
	}
	return nil
}

// refusedError says that the hub does not connect to an address.
type refusedError struct{ address netip.Addr }

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the hub does not connect to %s; to permit it, name its network in --allow-cluster-addresses of the manager", e.address)
}

func (n *Network) permits(ctx context.Context, addr netip.Addr) (bool, error) {
	has := func(p netip.Prefix) bool { return p.Contains(addr) }
	if len(n.Allowed) > 0 {
		return slices.ContainsFunc(n.Allowed, has), nil
	}
	machine := addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || has(metadata)
	if machine || slices.ContainsFunc(n.Refused, has) {
		return false, nil
	}
	own, err := n.Own.Contains(ctx, addr)
	return !own, err
}
