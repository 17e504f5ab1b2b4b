package notify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/subject"
	"github.com/spillway-dev/spillway/internal/ring"
)

// snapshot is a Notifier, and the rollouts of its namespace.
type snapshot struct {
	now      time.Time
	notifier *v1alpha1.Notifier
	subjects []decision.Subject
	// down are the StatefulSets that are down on purpose, and downUntil when that changes
	// automatically, zero for never.
	down      []string
	downUntil time.Time
	// kinds are those that were read, and policies the status of each policy by its key.
	kinds    []string
	policies map[string]*v1alpha1.ConfigPolicyStatus
	// renewed is when the alerts were sent last, zero if that is not known; silenced about what
	// alerts were silenced last, and silencedAt when.
	renewed, silencedAt time.Time
	silenced            []string
	reader              subject.Reader
}

// observe makes all the reads.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName, m *memory) (snapshot, error) {
	s := snapshot{
		now: r.options.Now().Truncate(time.Microsecond), notifier: &v1alpha1.Notifier{}, renewed: m.renewed,
		silenced: m.silenced, silencedAt: m.silencedAt,
		policies: map[string]*v1alpha1.ConfigPolicyStatus{}, reader: subject.Reader{Traced: r.options.Traced},
	}
	err := r.cached.Get(ctx, key, s.notifier)
	if apierrors.IsNotFound(err) || err == nil && s.notifier.DeletionTimestamp != nil {
		return s, ring.ErrGone
	}
	if err != nil {
		return s, fmt.Errorf("get Notifier %s: %w", key.Name, err)
	}
	for _, k := range subject.KindsOf(r.options.Rings, r.options.Namespaces) {
		if !r.readable.has(k.Name) {
			continue
		}
		if err := r.read(ctx, &s, k); err != nil {
			return s, err
		}
		s.kinds = append(s.kinds, k.Name)
	}
	slices.Sort(s.down)
	slices.SortFunc(s.subjects, func(a, b decision.Subject) int { return strings.Compare(a.Key, b.Key) })
	return s, nil
}

// read adds the rollouts of a kind.
func (r *reconciler) read(ctx context.Context, s *snapshot, k subject.Kind) error {
	list, err := r.list(k)
	if err != nil {
		return err
	}
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if !k.IsOfCluster {
		options = append(options, client.InNamespace(s.notifier.Namespace))
	}
	if err := r.cached.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list %s: %w", k.Name, err)
	}
	s.add(list)
	return nil
}

func (s *snapshot) add(list client.ObjectList) {
	switch l := list.(type) {
	case *v1alpha1.RolloutGroupList:
		for i := range l.Items {
			s.addGroup(&l.Items[i])
		}
	case *v1alpha1.ConfigPolicyList:
		for i := range l.Items {
			s.addPolicy(subject.KindPolicy, &l.Items[i], &l.Items[i].Status)
		}
	case *v1alpha1.ClusterConfigPolicyList:
		for i := range l.Items {
			s.addPolicy(subject.KindClusterPolicy, &l.Items[i], &l.Items[i].Status)
		}
	case *v1beta1.InstanceList:
		for i := range l.Items {
			s.subjects = append(s.subjects, s.reader.Instance(&l.Items[i]))
		}
	case *fleetv1.ModuleList:
		for i := range l.Items {
			s.subjects = append(s.subjects, s.reader.Module(subject.KindModule, &l.Items[i], &l.Items[i].Status))
		}
	case *fleetv1.BootstrapModuleList:
		for i := range l.Items {
			s.subjects = append(s.subjects, s.reader.Module(subject.KindBootstrapModule, &l.Items[i], &l.Items[i].Status))
		}
	}
}

func (s *snapshot) addGroup(g *v1alpha1.RolloutGroup) {
	s.subjects = append(s.subjects, s.reader.Group(g))
	down, until := subject.Down(g, s.now)
	s.down, s.downUntil = append(s.down, down...), ring.Earlier(s.downUntil, until)
}

// addPolicy adds the releases of a policy in the namespace of the Notifier, and no others.
func (s *snapshot) addPolicy(kind string, p client.Object, status *v1alpha1.ConfigPolicyStatus) {
	s.subjects = append(s.subjects, s.reader.Releases(kind, p, status, s.notifier.Namespace)...)
	s.policies[subject.KeyOf(kind, p)] = status
}

// missing is what became of an object that was reported of and was not read, nil if that is not
// known.
func (s *snapshot) missing(key string) *decision.Gone {
	if !slices.Contains(s.kinds, subject.KindOf(key)) {
		return nil
	}
	if p := s.policies[subject.PolicyKey(key)]; p != nil {
		return subject.EndedRelease(key, p, s.notifier.Namespace)
	}
	return subject.Deleted(key)
}
