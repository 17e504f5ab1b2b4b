//go:build node

package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// A chart that was made for Reloader runs as it is: a good Secret rolls its workloads, and a bad one stops at the first,
// which gets back what it had.
func TestAChartOfReloadersUsers(t *testing.T) {
	w := newWorld(t)
	w.pinnable()
	w.options.Reloader = &reloader.Options{Since: w.clock.Now()}
	w.policy("onFailure: Rollback, pinConfig: true")
	w.secret("good")
	w.manage()
	for _, name := range three {
		chart := strings.Replace(app(name, byEnv, ""), "annotations: {spillway.dev/update-on-config-change", "labels: {app.kubernetes.io/managed-by: Helm}, annotations: {reloader.stakater.com/auto", 1)
		w.apply(chart)
	}
	w.eventually(func() error {
		for _, name := range three {
			if w.deployment(name).Spec.Template.Annotations[native+"pins"] == "" {
				return fmt.Errorf("%s has no pins", name)
			}
		}
		return nil
	})
	w.reads("good", three...)
	w.secret("better")
	w.reads("better", three...)
	w.policy("onFailure: Rollback, pinConfig: true, " + staged)
	same := w.untouched(three[1:]...)
	w.secret("bad")
	w.says("app1", "ConfigRolledBack", "the previous config was restored")
	w.stopped("app1", three[1:]...)
	w.reads("better", three...)
	same()
	w.policy("onFailure: Rollback, pinConfig: true")
	w.secret("good2")
	w.reads("good2", three...)
}
