package config

import (
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// tracker knows which workloads policies and annotations of Reloader track, by the policies that the last pass has
// read. A policy that changes starts a pass, which lists all workloads: that an event was left out before does no
// harm.
type tracker struct {
	read     atomic.Pointer[policy.Set]
	reloader *reloader.Options
}

func (t *tracker) policies() policy.Set {
	if set := t.read.Load(); set != nil {
		return *set
	}
	return nil
}

// isRelevant is true for workloads that the ring may have to change.
func (t *tracker) isRelevant(obj client.Object) bool {
	return workload.IsRelevant(obj) || t.tracks(obj)
}

func (t *tracker) tracks(obj client.Object) bool {
	return t.policies().Tracking(obj) != nil || t.isReloaded(obj)
}

// isReloaded is true for workloads of which annotations of Reloader decide by what they are rolled, or have a mistake.
func (t *tracker) isReloaded(obj client.Object) bool {
	return t.reloader.Concerns(obj.GetNamespace(), obj.GetAnnotations(), workload.TemplateOf(obj).Annotations)
}
