package ring

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/ring"
)

// The labels and annotations by which users speak to the ring, and those that it keeps.
const (
	rolloutLabel       = "example.spillway.dev/rollout"
	memberLabel        = "example.spillway.dev/member"
	revisionAnnotation = "example.spillway.dev/revision"
	recordAnnotation   = "example.spillway.dev/record"
	// withdrawnAnnotation is the version at which a member must not get the revision that was
	// permitted. It has another one since.
	withdrawnAnnotation = "example.spillway.dev/withdrawn"
)

// record is what the ring writes down about itself: in a kind of its own that would be
// the status.
type record struct {
	Intents []intent `json:"intents,omitempty"`
	// Seen is how new the view was from which the last intents were decided.
	Seen string `json:"seen,omitempty"`
}

// intent permits to give a member a revision, as long as the member is the one that was
// seen.
type intent struct {
	Name     string           `json:"name"`
	UID      types.UID        `json:"uid"`
	Version  string           `json:"version"`
	Revision string           `json:"revision"`
	At       metav1.MicroTime `json:"at"`
}

// snapshot is what a pass decides from. Nothing in it changes.
type snapshot struct {
	now      time.Time
	live     bool
	object   *corev1.ConfigMap // nil if there is no rollout of the name
	record   record
	members  []corev1.ConfigMap
	asOf     string
	refusals ring.Refusals
}

// observe reads what was decided before first, and then what the next decision is about.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName, m *memory, live bool) (snapshot, error) {
	s := snapshot{now: r.now(), live: live, refusals: m.Refusals(r.now())}
	object := &corev1.ConfigMap{}
	if err := r.cached.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("get ConfigMap %s: %w", key.Name, err)
	} else if err != nil {
		object = nil
	}
	if s.object = m.Newest(object, s.now); s.object == nil {
		return s, nil
	}
	if raw := s.object.Annotations[recordAnnotation]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &s.record); err != nil {
			return s, fmt.Errorf("annotation %s of ConfigMap %s: %w", recordAnnotation, key.Name, err)
		}
	}
	from := r.cached
	if live {
		from = r.live
	}
	list := &corev1.ConfigMapList{}
	if err := from.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{memberLabel: key.Name}); err != nil {
		return s, fmt.Errorf("list the members of %s: %w", key.Name, err)
	}
	s.members = list.Items
	if live {
		s.asOf = list.ResourceVersion
	}
	for i := range s.members {
		s.asOf = ring.Newer(s.asOf, s.members[i].ResourceVersion)
	}
	return s, nil
}
