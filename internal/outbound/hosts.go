package outbound

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Hosts are names, addresses and networks: "prometheus.monitoring.svc", "*.monitoring.svc",
// "10.0.0.7", "10.0.0.0/8".
type Hosts struct {
	names    []string
	networks []netip.Prefix
}

var hostName = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// ParseHosts reads hosts.
func ParseHosts(texts []string) (Hosts, error) {
	h := Hosts{}
	for _, text := range texts {
		text = strings.ToLower(strings.TrimSpace(text))
		if network, ok := ParseNetwork(text); ok {
			h.networks = append(h.networks, network)
			continue
		}
		if !hostName.MatchString(text) {
			return Hosts{}, fmt.Errorf("%q is neither a name such as prometheus.monitoring.svc, an address, nor a network such as 10.0.0.0/8", text)
		}
		h.names = append(h.names, canonical(text))
	}
	return h, nil
}

// ParseNetwork reads an address or a network such as 10.0.0.0/8; it is false of another text.
func ParseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	network, err := netip.ParsePrefix(text)
	if mapped := network.Bits() - ipv4Mapped; err == nil && network.Addr().Is4In6() && mapped >= 0 {
		network = netip.PrefixFrom(network.Addr().Unmap(), mapped)
	}
	return network.Masked(), err == nil
}

// ipv4Mapped is the length of the prefix of IPv6 addresses that are IPv4 addresses.
const ipv4Mapped = 96

// canonical is a name without what makes no difference: the domain of the cluster of a
// Service, and a final dot.
func canonical(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return strings.TrimSuffix(name, ".cluster.local")
}

// named is true if a host is named, as what it is in a URL.
func (h *Hosts) named(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return h.contains(addr)
	}
	host = canonical(host)
	return slices.ContainsFunc(h.names, func(name string) bool {
		suffix, wild := strings.CutPrefix(name, "*")
		return host == name || wild && strings.HasSuffix(host, suffix)
	})
}

// contains is true if an address itself is named.
func (h *Hosts) contains(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(h.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

type addressKind int

const (
	special addressKind = iota
	private
	public
)

func networks(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

var (
	privateNetworks = networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "64:ff9b:1::/48")
	// specialNetworks are those of the machine itself, and those that lead nowhere or
	// through a tunnel.
	specialNetworks = networks("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "198.18.0.0/15", "224.0.0.0/3",
		"::/96", "::ffff:0:0:0/96", "100::/64", "2001::/32", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::254/128")
)

// kindOf is what an address is, with the IPv4 address that it may embed.
func kindOf(addr netip.Addr) addressKind {
	addr = embedded(addr.Unmap().WithZone(""))
	has := func(p netip.Prefix) bool { return p.Contains(addr) }
	switch {
	case !addr.IsValid() || slices.ContainsFunc(specialNetworks, has):
		return special
	case slices.ContainsFunc(privateNetworks, has):
		return private
	default:
		return public
	}
}

var translated, sixToFour = netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16")

// embedded is the IPv4 address that a gateway makes of an IPv6 address.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case translated.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	default:
		return addr
	}
}
