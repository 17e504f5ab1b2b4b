//go:build prometheus

package agent_test

import (
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

// TestPrometheus: the syncs of a cluster are in the dashboard of the fleet.
func TestPrometheus(t *testing.T) {
	w, p := newWorld(t), measured.NewPrometheus(t, nil)
	w.manage()
	published := w.publish("v1")
	w.assign("c1", w.sync("shop", "v1", ""))
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "applied "+published)
	p.ShowsPanel("../../../monitoring/dashboards/fleet.json", "Syncs")
}
