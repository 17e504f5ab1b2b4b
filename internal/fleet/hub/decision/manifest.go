package decision

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Problems are the mistakes that would stall a module, as far as its manifest
// shows them. Which revisions there are to go back to is not known from it.
func Problems(module client.Object, now time.Time) []string {
	return decide(fromManifest(module, nil, now)).problems
}

// StageOf is a stage, and the clusters that belong to it.
type StageOf struct {
	Name     string
	Clusters []string
}

// StagesOf are the stages of a module with these clusters, were none assigned
// anything yet, and the clusters that belong to none.
func StagesOf(module client.Object, clusters []model.Cluster) (stages []StageOf, unmatched []string) {
	d := decide(fromManifest(module, clusters, time.Time{}))
	for i := range d.stages {
		stage := StageOf{Name: d.stages[i].name}
		for _, m := range d.stages[i].members {
			stage.Clusters = append(stage.Clusters, m.Name)
		}
		stages = append(stages, stage)
	}
	for _, m := range d.aside {
		unmatched = append(unmatched, m.Name)
	}
	return stages, unmatched
}

// Tolerance says of a stage that tolerates failures how many clusters may be unready.
type Tolerance struct{ Stage, Sentence string }

// Tolerances are those of the stages of a module that tolerate failures.
func Tolerances(module client.Object) []Tolerance {
	return decide(fromManifest(module, nil, time.Time{})).tolerances()
}

func (d *decision) tolerances() []Tolerance {
	var all []Tolerance
	for i := range d.stages {
		s, r := &d.stages[i], d.o.Module.Rollout()
		failures := maxFailures(&s.spec, r)
		if !d.o.Module.IsStaged() || ring.LimitOf(failures).Value <= 0 || d.onFailure() == rollout.Continue {
			continue
		}
		all = append(all, Tolerance{s.name, fmt.Sprintf("stage %s: %s may be unready at a time (maxUnreadyClusters), not counting up to %s that have failed (maxFailures)",
			s.name, clusters(maxUnready(&s.spec, r)), failures)})
	}
	return all
}

// clusters is a number or a percentage of clusters in words.
func clusters(v *intstr.IntOrString) string {
	switch {
	case v.Type == intstr.String:
		return v.StrVal + " of the clusters"
	case v.IntVal == 1:
		return "1 cluster"
	default:
		return v.String() + " clusters"
	}
}

// fromManifest is what would be observed had the module just been created.
func fromManifest(module client.Object, clusters []model.Cluster, now time.Time) *model.Observed {
	kind := model.KindModule
	if _, bootstrap := module.(*v1alpha1.BootstrapModule); bootstrap {
		kind = model.KindBootstrap
	}
	spec, _ := model.Parts(module)
	o := &model.Observed{Now: now, Module: model.Module{Kind: kind, Namespace: module.GetNamespace(), Name: module.GetName(), Spec: *spec}}
	o.Module.Spec.TargetRevision = ""
	for _, c := range clusters {
		c.Ready = true
		o.Clusters = append(o.Clusters, c)
	}
	return o
}
