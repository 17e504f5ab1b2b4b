package snapshots

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spillway-dev/spillway/internal/config/pin"
)

// Where decides whether pins are on in a namespace, for all that ask.
type Where struct {
	pin.Namespaces

	// reader reads the labels of a namespace, where some are selected by them.
	reader client.Reader
	// refused is why there can be no pins, by namespace; that of the empty name is for all. One of
	// them affects its namespace alone.
	refused map[string]string
}

// NewWhere decides for some namespaces, of which it reads the labels if they are selected by them.
func NewWhere(n pin.Namespaces, reader client.Reader) *Where {
	return &Where{Namespaces: n, reader: reader}
}

// Refusal is why there are no pins in a namespace, empty if there are. A namespace whose labels
// cannot be read has none.
func (w *Where) Refusal(ctx context.Context, namespace string) string {
	var of labels.Set
	if w.Selector != nil {
		read := newNamespace()
		if err := w.reader.Get(ctx, client.ObjectKey{Name: namespace}, read); err != nil {
			return fmt.Sprintf("pins are not enabled in namespace %s: its labels cannot be read: %v", namespace, err)
		}
		of = read.Labels
	}
	return cmp.Or(w.Namespaces.Refusal(namespace, of), w.refused[""], w.refused[namespace])
}

// On is true if pins are on in a namespace.
func (w *Where) On(ctx context.Context, namespace string) bool {
	return w.Refusal(ctx, namespace) == ""
}

// Watched is a Namespace to watch where pins are on by its labels, nil if they never are.
func (w *Where) Watched() client.Object {
	if w.Selector == nil {
		return nil
	}
	return newNamespace()
}

// Switched leaves out what does not turn pins on or off in a namespace.
func (w *Where) Switched() predicate.Predicate {
	is := func(obj client.Object) bool { return w.Selector.Matches(labels.Set(obj.GetLabels())) }
	p := predicate.NewPredicateFuncs(is)
	p.UpdateFunc = func(e event.UpdateEvent) bool { return is(e.ObjectOld) != is(e.ObjectNew) }
	return p
}

// inside leaves out what is in a namespace without pins.
func (w *Where) inside(ctx context.Context) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return w.On(ctx, obj.GetNamespace()) })
}

// isRefused is true if there can be pins nowhere.
func (w *Where) isRefused() bool {
	return w.refused[""] != "" || !w.ReachAll() && len(w.possible()) == 0
}

// possible are the namespaces that are named and have pins.
func (w *Where) possible() []string {
	var names []string
	for _, name := range w.Names {
		if w.refused[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// Refused are why there can be no pins, by namespace; that of the empty name is for all.
func (w *Where) Refused() map[string]string { return w.refused }

func newNamespace() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}
