package config

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch

// namespaces reads the labels of namespaces from when a policy has stages of them.
type namespaces struct {
	reader client.Reader
	// watch starts a pass whenever they change, nil in a simulation. It is called once.
	watch func(ctx context.Context) error
	// watched is true once they are watched, and unread is why they cannot be.
	watched bool
	unread  string
}

// observe adds the namespaces, if a policy has stages of them.
func (n *namespaces) observe(ctx context.Context, policies policy.Set, o *decision.Observed) error {
	if !policies.StagesNamespaces() {
		return nil
	}
	list, err := n.list(ctx)
	if o.NamespacesUnread = n.unread; err != nil || n.unread != "" {
		return err
	}
	if len(list.Items) == 0 && n.watch == nil { // a simulation of some namespaces does not know the others
		o.Policies = policies.Alone()
		return nil
	}
	o.Namespaces = make(map[string]decision.Namespace, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		o.Namespaces[m.Name] = decision.Namespace{Labels: m.Labels, Terminating: m.DeletionTimestamp != nil}
	}
	return nil
}

// list lists the namespaces, and watches them from then on. There are none if they must not be read.
func (n *namespaces) list(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
	list := namespaceList()
	if !n.watched && n.watch != nil {
		err := n.watch(ctx)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if n.watched = true; err != nil {
			n.unread = "the labels of namespaces cannot be read; grant the manager list and watch on namespaces, and restart it"
		}
	}
	if n.unread != "" {
		return list, nil
	}
	if err := n.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	return list, nil
}

// selectNamespaces finds the namespaces whose annotations of Reloader count, if that depends on their labels.
func (o *observer) selectNamespaces(ctx context.Context) error {
	r := o.options.Reloader
	if r == nil || r.Namespaces == nil {
		return nil
	}
	list, err := o.spread.list(ctx)
	switch {
	case o.readOnly && apierrors.IsForbidden(err):
		r.Namespaces.ObserveAll()
		return nil
	case err != nil:
		return err
	}
	found := make(map[string]labels.Set, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].Labels
	}
	r.Namespaces.Observe(o.options.Now(), found)
	return nil
}

// watchNamespaces starts a pass whenever a namespace gets other labels, is created or is deleted. It fails if
// they must not be read.
func watchNamespaces(mgr ctrl.Manager, c controller.Controller, log logr.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := mgr.GetAPIReader().List(ctx, namespaceList(), client.Limit(1)); err != nil {
			log.Error(err, "the labels of namespaces cannot be read")
			return fmt.Errorf("list one namespace: %w", err)
		}
		moves := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		}}
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := c.Watch(source.Kind[client.Object](mgr.GetCache(), namespace, toRing(), moves)); err != nil {
			return fmt.Errorf("watch namespaces: %w", err)
		}
		return nil
	}
}

func namespaceList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return list
}
