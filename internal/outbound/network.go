package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Network is what requests can reach.
type Network struct {
	// Hosts are those that the platform allows, besides public ones.
	Hosts Hosts
	// Services reads Services from the API server itself.
	Services client.Reader
	// Own is what of the cluster counts as private, whatever its addresses.
	Own *Own
}

// permits says whether a request of a namespace may connect to an address for a host; the
// error is what to do if not.
func (n *Network) permits(ctx context.Context, namespace, host string, addr netip.Addr) error {
	kind := kindOf(addr)
	if kind == public && !n.Hosts.contains(addr) {
		own, err := n.Own.Contains(ctx, addr)
		if err != nil {
			return fmt.Errorf("%s has the address %s, and it is not known whether that is one of this cluster: %w", host, addr, err)
		}
		if own {
			kind = private
		}
	}
	switch {
	case kind == public, n.Hosts.contains(addr), kind == private && n.Hosts.named(host):
		return nil
	case kind == private:
		if service, ok := serviceOf(namespace, host); ok {
			return n.permitsService(ctx, namespace, service, addr)
		}
		return fmt.Errorf("%s has the private address %s; to permit it, name the host in --gate-hosts of the manager", host, addr)
	default:
		return fmt.Errorf("%s has the address %s, which is not one of a network; to permit it, name the address in --gate-hosts of the manager", host, addr)
	}
}

// serviceOf is the name of a Service in a namespace of which a host is the name.
func serviceOf(namespace, host string) (service string, ok bool) {
	service, ok = strings.CutSuffix(canonical(host), "."+namespace+".svc")
	return service, ok && service != ""
}

// permitsService allows the cluster IP of a Service, which its namespace cannot choose. Its name
// may resolve to something else: a Service of the type ExternalName is a name for any other.
func (n *Network) permitsService(ctx context.Context, namespace, name string, addr netip.Addr) error {
	service := &corev1.Service{}
	err := client.IgnoreNotFound(n.Services.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the manager may not get Services in namespace %s; run spillway install again, or name the host in --gate-hosts of the manager", namespace)
	}
	if err != nil {
		return fmt.Errorf("get Service %s: %w", name, err)
	}
	if !slices.ContainsFunc(service.Spec.ClusterIPs, func(ip string) bool { return same(ip, addr) }) {
		return fmt.Errorf("%s has the private address %s, which is no cluster IP of a Service of that name in namespace %s; to permit it, name the host in --gate-hosts of the manager", name, addr, namespace)
	}
	return nil
}

func same(text string, addr netip.Addr) bool {
	parsed, err := netip.ParseAddr(text) // that of a headless Service is None
	return err == nil && parsed.Unmap() == addr.Unmap()
}
