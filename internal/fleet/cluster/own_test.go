package cluster_test

import (
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/outbound"
)

// The networks of Services are those that the API server says, wherever the API server is; without
// the permission to list them, the network around the API server is taken for them.
func TestServiceCIDRsCount(t *testing.T) {
	admin, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	range1 := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{GenerateName: "own-"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"34.118.224.0/24"}}}
	if err := admin.Create(t.Context(), range1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(t.Context(), range1) })
	limited, err := client.New(testenv.Shared().ConfigAs("without-permissions"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		reader client.Reader
		want   map[string]bool
	}{
		"listed":        {admin, map[string]bool{"34.118.224.9": true, "10.0.0.9": true, "10.96.0.1": true, "10.96.7.7": false, "8.8.8.8": false}},
		"not permitted": {limited, map[string]bool{"34.118.224.9": false, "10.96.0.1": true, "10.96.7.7": true}},
	} {
		own := &outbound.Own{Host: "10.96.0.1", Services: test.reader}
		for address, want := range test.want {
			if got, err := own.Contains(t.Context(), netip.MustParseAddr(address)); err != nil || got != want {
				t.Errorf("%s, %s: %v, %v", name, address, got, err)
			}
		}
	}
}
