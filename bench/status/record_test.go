package status_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// What a manager would have recorded: everything waits.

// waiting is the record of a rollout of which all units wait, stage by stage.
func waiting(units []ring.Waiting, stages ...record.Stage) *record.Rollout {
	at := metav1.NowMicro()
	total := int32(len(units))
	return &record.Rollout{
		Phase: "Waiting", WaitingFor: "all is waiting", StartedAt: at, DecidedAt: at, Stages: stages,
		Units: record.Counts{Total: total, Waiting: total}, Causes: ring.Causes(units, ""),
	}
}

// held is a unit that waits.
func held(unit, does, why string) ring.Waiting {
	return ring.Waiting{Unit: unit, State: ring.StateWaiting, Reason: rollout.ReasonPaused, Cause: rollout.Cause{Does: does, Why: why}}
}

// recordModule records what the clusters of a module wait for.
func (w *world) recordModule(module *fleetv1.Module, clusters int, why string) {
	units := make([]ring.Waiting, clusters)
	for i := range units {
		units[i] = held(fmt.Sprintf("all/%s-%d", module.Name, i), "is waiting", why)
	}
	module.Status.ObservedGeneration = module.Generation
	module.Status.Rollout = waiting(units, record.Stage{Name: "all", Phase: "Waiting", Message: "all is waiting", Total: int32(clusters)})
	if err := w.client.Status().Update(w.t.Context(), module); err != nil {
		w.t.Error(err)
	}
}

// group is a group whose zones wait.
func (w *world) group(name string) {
	g := &spillwayv1.RolloutGroup{ObjectMeta: w.named(name)}
	w.create(g)
	var stages []record.Stage
	var units []ring.Waiting
	for i := range zonesInGroup {
		zone := fmt.Sprintf("%s-%d", name, i)
		stages = append(stages, record.Stage{Name: zone, Phase: "Waiting", Message: zone + " is waiting", Total: podsInZone})
		for p := range podsInZone {
			units = append(units, held(fmt.Sprintf("%s/%s-%d", zone, zone, p), "is waiting", "the group is paused"))
		}
	}
	g.Status.ObservedGeneration, g.Status.Rollout = g.Generation, waiting(units, stages...)
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Error(err)
	}
}

// pause records that a workload waits for the ConfigMap that it uses.
func (w *world) pause(name string) {
	r := &spillwayv1.ConfigRollout{ObjectMeta: w.named("configmap-" + name), Object: spillwayv1.ConfigRolloutObject{Kind: "ConfigMap", Name: name}}
	r.Rollout = waiting([]ring.Waiting{held("Deployment "+name, "is paused", "for "+name)})
	w.create(r)
}
