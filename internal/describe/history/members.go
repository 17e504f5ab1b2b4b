package history

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// Members are an object and all that it consists of, as far as Events are about them.
type Members struct {
	refs map[describe.Ref]bool
	// module is the name of the sync of a module, of which assemblages tell; empty
	// where it is no module.
	module string
}

// Has is true if a note is about one of them.
func (s *Members) Has(n *Event) bool {
	if s.module != "" && strings.HasSuffix(n.About.Kind, "Assemblage") {
		return strings.HasPrefix(n.Text, "sync "+s.module+":")
	}
	return s.refs[n.About]
}

// Add adds the objects among units.
func (s *Members) Add(units []describe.Unit) {
	for i := range units {
		if units[i].Namespace != "" {
			s.refs[units[i].Ref] = true
		}
	}
}

// MembersOf are an object and what it consists of: a group's StatefulSets, what the plans
// of an Instance have applied, and the clusters of a module. Of what may not be looked
// at, there is none.
func MembersOf(ctx context.Context, reader client.Reader, ref describe.Ref) (*Members, error) {
	s, h := &Members{refs: map[describe.Ref]bool{ref: true}}, &historian{reader: reader, ref: ref}
	switch ref.Kind {
	case describe.KindGroup:
		return s, s.addZones(ctx, h)
	case describe.KindInstance:
		return s, s.addApplied(ctx, h)
	case model.KindModule, model.KindBootstrap:
		s.module = ref.Name
	}
	return s, nil
}

func (s *Members) addZones(ctx context.Context, h *historian) error {
	sets := &appsv1.StatefulSetList{}
	if err := h.inNamespace(ctx, sets); err != nil {
		return err
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; groupOf(set) == h.ref.Name {
			s.refs[describe.Ref{Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name}] = true
		}
	}
	return nil
}

// addApplied adds what plans have applied, and the groups of the StatefulSets in it.
func (s *Members) addApplied(ctx context.Context, h *historian) error {
	i := &v1beta1.Instance{}
	err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.ref.Namespace, Name: h.ref.Name}, i)
	if err != nil {
		if apimeta.IsNoMatchError(err) || apierrors.IsForbidden(err) || client.IgnoreNotFound(err) == nil {
			return nil
		}
		return err //nolint:wrapcheck // it names the object
	}
	for _, entry := range i.Status.Inventory {
		namespace := entry.Namespace
		if namespace == "" {
			namespace = i.Namespace
		}
		s.refs[describe.Ref{Kind: entry.Kind, Namespace: namespace, Name: entry.Name}] = true
	}
	return s.addGroups(ctx, h)
}

func (s *Members) addGroups(ctx context.Context, h *historian) error {
	sets := &appsv1.StatefulSetList{}
	if err := h.inNamespace(ctx, sets); err != nil {
		return err
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if group := groupOf(set); group != "" && s.refs[describe.Ref{Kind: "StatefulSet", Namespace: set.Namespace, Name: set.Name}] {
			s.refs[describe.Ref{Kind: describe.KindGroup, Namespace: set.Namespace, Name: group}] = true
		}
	}
	return nil
}
