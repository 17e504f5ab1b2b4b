package hub_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// woken is a queue that notes who is woken.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	names []string
}

func (q *woken) AddAfter(r reconcile.Request, _ time.Duration) { q.names = append(q.names, r.Name) }

// An assemblage that is made says nothing of the module that waits for it, and that a move was
// withdrawn is no news of what is assigned. Nothing else wakes the module.
func TestAnAssemblageWakesWhoWaitsForIt(t *testing.T) {
	w := newWorld(t)
	w.module("v1", everywhere)
	h := hub.ToModules(w.client)
	empty := &v1alpha1.ProxyAssemblage{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a", UID: "a", ResourceVersion: "1"}}
	other := empty.DeepCopy()
	other.Spec.Assemblage.Syncs = []v1alpha1.ProxySync{{NamedSync: v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: "other"}}}}
	withdrawn := other.DeepCopy()
	withdrawn.ResourceVersion, withdrawn.Annotations = "2", map[string]string{vocabulary.Withdrawn.Native: "1"}
	labeled := other.DeepCopy()
	labeled.ResourceVersion, labeled.Labels = "2", map[string]string{"note": "x"}
	for name, c := range map[string]struct {
		tell func(*woken)
		want []string
	}{
		"it is made":                   {func(q *woken) { h.Create(t.Context(), event.CreateEvent{Object: empty}, q) }, []string{app}},
		"it goes":                      {func(q *woken) { h.Delete(t.Context(), event.DeleteEvent{Object: empty}, q) }, []string{app}},
		"it is made for another":       {func(q *woken) { h.Create(t.Context(), event.CreateEvent{Object: other}, q) }, []string{"other"}},
		"a move in it is withdrawn":    {func(q *woken) { h.Update(t.Context(), event.UpdateEvent{ObjectOld: other, ObjectNew: withdrawn}, q) }, []string{app}},
		"what is assigned is the same": {func(q *woken) { h.Update(t.Context(), event.UpdateEvent{ObjectOld: other, ObjectNew: labeled}, q) }, nil},
	} {
		q := &woken{}
		if c.tell(q); !slices.Equal(q.names, c.want) {
			t.Errorf("%s: woken are %v, want %v", name, q.names, c.want)
		}
	}
}
