package record

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// ordinals are those of the Pods that a StatefulSet is to have.
type ordinals struct {
	set          string
	first, count int
}

func ordinalsOf(s *appsv1.StatefulSet) ordinals {
	return ordinals{s.Name, replica.FirstOrdinal(s), replica.Count(s)}
}

// has is true of a Pod that the StatefulSet is to have: one that goes is replaced, and not
// removed.
func (o ordinals) has(pod string) bool {
	n := replica.Ordinal(o.set, pod)
	return n >= o.first && n < o.first+o.count
}

// scaled sees whether the replicas of a StatefulSet of a group have changed. Those that
// follow others are the zones ring's; others are scaled by the client that has written them.
func (r *Recorder) scaled(at time.Duration, before, after *appsv1.StatefulSet) {
	from, to := ptr.Deref(before.Spec.Replicas, 1), ptr.Deref(after.Spec.Replicas, 1)
	key := client.ObjectKeyFromObject(after)
	group := vocabulary.GroupOf(after.Labels, after.Annotations)
	if from == to || group == "" {
		return
	}
	s := Step{
		At: Offset(at), Ring: Kubernetes, Namespace: key.Namespace, Object: Reference("StatefulSet", key.Name),
		Does: "is scaled", From: replicasText(from), To: replicasText(to),
	}
	if scaling.Follows(after) {
		s.Ring, s.Object, s.Unit = RingZones, Reference("RolloutGroup", group), key.Name
	}
	r.step(s)
}

func replicasText(n int32) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
