package workload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
)

// ListObjects lists the objects of a namespace that may roll workloads with annotations of Reloader, sorted, and the
// kinds that must not be listed.
func ListObjects(ctx context.Context, source *content.Source, o *reloader.Options, namespace string) (objects []reloader.Object, unlisted []content.Kind, err error) {
	unlisted = []content.Kind{content.SecretProviderClass} // they have no list of their own
	for kind, list := range map[content.Kind]client.ObjectList{content.ConfigMap: &corev1.ConfigMapList{}, content.Secret: &corev1.SecretList{}} {
		var failed error
		if !source.IsForbidden(kind) {
			failed = source.Digests.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		}
		switch {
		case source.IsForbidden(kind), apierrors.IsForbidden(failed):
			unlisted = append(unlisted, kind)
			continue
		case failed != nil:
			return nil, nil, fmt.Errorf("list what may roll workloads: %w", failed)
		}
		_ = apimeta.EachListItem(list, func(item runtime.Object) error { // it returns none
			if obj, ok := item.(client.Object); ok && !content.IsSnapshot(obj) {
				objects = append(objects, o.ObjectOf(obj))
			}
			return nil
		})
	}
	slices.SortFunc(objects, reloader.Object.Compare)
	slices.Sort(unlisted)
	return objects, unlisted, nil
}

// DemandIn is the config that counts, with these objects in the namespace; those of kinds that must not be listed
// are the candidates.
func (r *Reloaded) DemandIn(d content.Demand, objects []reloader.Object, unlisted []content.Kind) content.Demand {
	r.missed = r.Wants.Missed(objects)
	objects = slices.Clone(objects)
	for _, kind := range unlisted {
		objects = append(objects, r.candidates(kind)...)
	}
	return r.DemandOf(d, objects)
}
