package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Own is what of the cluster itself no request of a user may reach, by whatever name: its Services,
// whose addresses are public ones in some clusters, and its API server. A nil Own has none.
type Own struct {
	// Host is the name or the address by which Pods reach the API server, empty outside of one.
	Host string
	// Services lists ServiceCIDRs, as the API server has them.
	Services client.Reader
}

// Contains reports whether an address is one of them. It reads them for each connection, because
// ranges are added and names resolve to something else; what is not known is an error.
func (o *Own) Contains(ctx context.Context, addr netip.Addr) (bool, error) {
	if o == nil {
		return false, nil
	}
	addr = embedded(addr.Unmap().WithZone(""))
	services, err := o.services(ctx)
	if err != nil {
		return false, err
	}
	servers, err := o.servers(ctx)
	if err != nil {
		return false, err
	}
	for _, server := range servers {
		if server == addr || services == nil && servicesOf(server).Contains(addr) {
			return true, nil
		}
	}
	return slices.ContainsFunc(services, func(p netip.Prefix) bool { return p.Contains(addr) }), nil
}

// services are the networks of Services; nil if the API server does not serve them, or not to us.
func (o *Own) services(ctx context.Context) ([]netip.Prefix, error) {
	if o.Services == nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDRList"})
	err := o.Services.List(ctx, list)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	var all []netip.Prefix
	for i := range list.Items {
		texts, _, _ := unstructured.NestedStringSlice(list.Items[i].Object, "spec", "cidrs")
		for _, text := range texts {
			if network, ok := ParseNetwork(text); ok {
				all = append(all, network)
			}
		}
	}
	return all, nil
}

// servers are the addresses of the API server.
func (o *Own) servers(ctx context.Context) ([]netip.Addr, error) {
	if o.Host == "" {
		return nil, nil
	}
	if addr, err := netip.ParseAddr(o.Host); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", o.Host)
	if err != nil {
		return nil, fmt.Errorf("resolve %s, the API server: %w", o.Host, err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, nil
}

// The size of the network around the address of the API server that is taken for that of the
// Services, where no ServiceCIDR says what that is.
const (
	serviceBits4 = 16
	serviceBits6 = 108
)

// servicesOf is the network of Services in which an address is.
func servicesOf(addr netip.Addr) netip.Prefix {
	bits := serviceBits6
	if addr.Is4() {
		bits = serviceBits4
	}
	return netip.PrefixFrom(addr, bits).Masked()
}
