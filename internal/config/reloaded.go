package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// listing are the objects of a namespace that may roll workloads with annotations of Reloader.
type listing struct {
	objects []reloader.Object
	// unlisted are the kinds that must not be listed.
	unlisted []content.Kind
	// version identifies them.
	version string
}

// demand finds what config of a workload counts, if annotations of Reloader decide that. It returns what that was
// decided from.
func (p *pass) demand(ctx context.Context, e *entry) (version string, err error) {
	r := e.workload.Reloaded
	if r == nil {
		return e.version, nil
	}
	in, err := p.objectsIn(ctx, e.workload.Namespace)
	if err != nil {
		return "", err
	}
	version = e.version + " " + in.version
	if e.demandedAt != version {
		objects := slices.Clone(in.objects)
		for _, kind := range in.unlisted {
			objects = append(objects, r.Candidates(kind)...)
		}
		e.workload.Demand, e.demandedAt = r.DemandOf(e.workload.Demand, objects), version
	}
	return version, nil
}

// objectsIn lists the objects of a namespace, once a pass.
func (p *pass) objectsIn(ctx context.Context, namespace string) (listing, error) {
	if l, ok := p.listed[namespace]; ok {
		return l, nil
	}
	l := listing{unlisted: []content.Kind{content.SecretProviderClass}} // they have no list of their own
	for kind, list := range map[content.Kind]client.ObjectList{content.ConfigMap: &corev1.ConfigMapList{}, content.Secret: &corev1.SecretList{}} {
		err := p.list(ctx, kind, list, namespace)
		switch {
		case apierrors.IsForbidden(err):
			l.unlisted = append(l.unlisted, kind)
			continue
		case err != nil:
			return listing{}, err
		}
		_ = apimeta.EachListItem(list, func(item runtime.Object) error { // it returns none
			if obj, ok := item.(client.Object); ok && !content.IsSnapshot(obj) {
				l.objects = append(l.objects, p.options.Reloader.ObjectOf(obj))
			}
			return nil
		})
	}
	slices.SortFunc(l.objects, reloader.Object.Compare)
	slices.Sort(l.unlisted)
	sum := sha256.New()
	_, _ = fmt.Fprint(sum, l.objects, l.unlisted)
	l.version = hex.EncodeToString(sum.Sum(nil)[:8])
	if p.listed == nil {
		p.listed = map[string]listing{}
	}
	p.listed[namespace] = l
	return l, nil
}

// list lists objects of a kind. The objects are not changed.
func (p *pass) list(ctx context.Context, kind content.Kind, list client.ObjectList, namespace string) error {
	if p.source.IsForbidden(kind) {
		return apierrors.NewForbidden(corev1.Resource(string(kind)), "", nil) //nolint:wrapcheck // it is ours
	}
	if err := p.source.Digests.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list what may roll workloads: %w", err)
	}
	return nil
}
