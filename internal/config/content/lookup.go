package content

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Source is where config is read, and which of it may be read.
type Source struct {
	// Digests reads ConfigMaps and Secrets reduced by [Digest].
	Digests client.Reader
	// Values reads ConfigMaps and Secrets as they are, from the API server.
	Values client.Reader
	// Forbidden is true for a kind that must not be read. Nil if all may be.
	Forbidden func(Kind) bool
	// Provided is true where the secrets store CSI driver is installed.
	Provided bool
	// Namespaces are those that may be read, all if empty.
	Namespaces []string
	// AllowCrossNamespace lets workloads name extra config of other namespaces that
	// did not opt in to it.
	AllowCrossNamespace bool
	// Hashes are those that are known from earlier passes, nil if they are not kept.
	Hashes *HashCache
}

// Lookup is one pass over a [Source]: it reads each object at most once.
type Lookup struct {
	Source

	facts Facts
	// newer are the versions of objects that were read for a hash, where the cache had another one.
	newer map[Object]string
}

// IsBehind is true if an object was read for the hash of another workload, and has another version than is known
// for this one.
func (l *Lookup) IsBehind(k *Known) bool {
	for o, version := range l.newer {
		if f, uses := k.facts[o]; uses && f.version != version {
			return true
		}
	}
	return false
}

// Lacks says what a Pod cannot start without and does not exist, each as a clause.
func Lacks(ctx context.Context, reader client.Reader, namespace string, pod *corev1.PodSpec) ([]string, error) {
	missing, err := Source{Digests: Digesting(reader)}.Lookup().Missing(ctx, DemandOf(namespace, pod, nil, false))
	var lacks []string
	for _, m := range missing {
		lacks = append(lacks, m.String(namespace))
	}
	return lacks, err
}

// Missing is what Pods cannot start without that use some objects, each once.
func (l *Lookup) Missing(ctx context.Context, d Demand) ([]Missing, error) {
	k := Known{demand: d, facts: Facts{}}
	for _, ref := range d.Uses {
		f, err := l.factOf(ctx, ref.Object)
		if err != nil {
			return nil, err
		}
		k.facts[ref.Object] = f
	}
	return k.Missing(), nil
}

// IsForbidden is true for a kind that must not be read.
func (s Source) IsForbidden(kind Kind) bool { return s.Forbidden != nil && s.Forbidden(kind) }

// Lookup begins a pass.
func (s Source) Lookup() *Lookup {
	return &Lookup{Source: s, facts: Facts{}, newer: map[Object]string{}}
}

// Observe brings what is known of a workload's config up to date, as far as
// digests tell; version is that of the workload. It returns true if config that
// counts has changed since the last time.
func (l *Lookup) Observe(ctx context.Context, k *Known, version string, d Demand) (bool, error) {
	if l.isUnchanged(ctx, k, version) {
		return false, nil
	}
	k.derived = derived{}
	k.demand, k.denied, k.leftOut, k.hidden, k.version, k.facts = d, nil, nil, false, version, Facts{}
	if l.Hashes != nil {
		k.hashes = nil // they are found there by all that they follow from, also by what is ignored
	}
	out := map[Object]bool{}
	for _, ref := range slices.Concat(d.Uses, d.Wave) {
		if _, done := k.facts[ref.Object]; done || out[ref.Object] {
			continue
		}
		f, denied, err := l.find(ctx, d.Namespace, ref.Object)
		switch {
		case err != nil:
			k.facts = nil // what was read so far says nothing of the rest
			return false, err
		case denied != "" && f.out:
			out[ref.Object] = true
			k.leaveOut(denied, f.exists) // not read, only that it may exist
			continue
		case denied != "":
			k.denied = append(k.denied, denied)
		}
		k.facts[ref.Object] = f
	}
	k.demand.Uses, k.demand.Wave = except(d.Uses, out), except(d.Wave, out)
	return k.refresh(), nil
}

// Exists is true if an object exists, and if that cannot be read.
func (l *Lookup) Exists(ctx context.Context, o Object) bool {
	f, err := l.factOf(ctx, o)
	return err != nil || f.exists
}

// LeftOut says, as sentences, which of some extra objects do not count for workloads of a
// namespace, as far as that can be read.
func (l *Lookup) LeftOut(ctx context.Context, namespace string, extra []Reference) []string {
	k, others := Known{}, slices.DeleteFunc(slices.Clone(extra), func(r Reference) bool { return r.Object.Namespace == namespace })
	if _, err := l.Observe(ctx, &k, "", Demand{Namespace: namespace, Uses: others}); err != nil {
		return nil
	}
	return k.LeftOut()
}

// leaveOut records an object of another namespace that does not count.
func (k *Known) leaveOut(denied string, mayExist bool) {
	k.leftOut = append(k.leftOut, denied+"; ignoring it")
	k.hidden = k.hidden || mayExist
}

// except are the references to other objects.
func except(refs []Reference, out map[Object]bool) []Reference {
	if len(out) == 0 {
		return refs
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r Reference) bool { return out[r.Object] })
}

// isUnchanged is true if neither the workload nor anything that it uses has
// changed since the last pass, so that all that is known still holds.
func (l *Lookup) isUnchanged(ctx context.Context, k *Known, version string) bool {
	if k.facts == nil || k.version != version || len(k.denied) > 0 || len(k.leftOut) > 0 {
		return false
	}
	for o, known := range k.facts {
		if !l.isSame(ctx, o, known) {
			return false
		}
	}
	return true
}

// isSame is true if the fact of an object is still what is known of it. What it says is read again only
// if it is not.
func (l *Lookup) isSame(ctx context.Context, o Object, known fact) bool {
	if _, read := l.facts[o]; !read && known.exists && o.Kind != SecretProviderClass {
		if obj := o.Kind.New(); l.get(ctx, o, obj) == nil && versionOf(obj) == known.version {
			l.facts[o] = known
			return true
		}
	}
	f, err := l.factOf(ctx, o)
	return err == nil && f.version == known.version
}

// find returns the fact of an object, and a sentence if it must not be read. An object of
// another namespace is out then, unless this reader alone may not read it.
func (l *Lookup) find(ctx context.Context, namespace string, o Object) (fact, string, error) {
	if !ring.Watches(l.Namespaces, o.Namespace) {
		return fact{exists: true, out: true}, fmt.Sprintf("%s is in a namespace that the manager does not watch; add it to --namespaces", o.From(namespace)), nil
	}
	if l.IsForbidden(o.Kind) {
		return fact{}, forbidden(o, namespace), nil
	}
	f, err := l.factOf(ctx, o)
	if apierrors.IsForbidden(err) {
		return fact{}, forbidden(o, namespace), nil
	}
	if err != nil {
		return fact{}, "", err
	}
	if o.Namespace != namespace && !l.AllowCrossNamespace && !f.isSharedWith(namespace) {
		return fact{exists: f.exists, out: true}, fmt.Sprintf("%s not found, or not shared with namespace %s; annotate it with %s: %s",
			o.From(namespace), namespace, vocabulary.SharedWith.Native, namespace), nil
	}
	return f, "", nil
}

func forbidden(o Object, namespace string) string {
	return fmt.Sprintf("%s cannot be read: forbidden; grant get, list and watch on %ss in namespace %s",
		o.From(namespace), strings.ToLower(string(o.Kind)), o.Namespace)
}

func (l *Lookup) factOf(ctx context.Context, o Object) (fact, error) {
	if f, ok := l.facts[o]; ok {
		return f, nil
	}
	f, err := l.read(ctx, o)
	if err != nil {
		return fact{}, err
	}
	l.facts[o] = f
	return f, nil
}

func (l *Lookup) read(ctx context.Context, o Object) (fact, error) {
	if o.Kind == SecretProviderClass {
		if !l.Provided {
			return fact{}, nil
		}
		versions, err := provided(ctx, l.Digests, o)
		return providedFact(versions), err
	}
	if !isName(o.Name) {
		return fact{}, nil // a Pod may name it, and no object can have it
	}
	obj := o.Kind.New()
	err := l.get(ctx, o, obj)
	switch {
	case err == nil:
		return factOf(obj), nil
	case apierrors.IsNotFound(err):
		return fact{}, nil
	default:
		return fact{}, fmt.Errorf("get %s: %w", o.From(""), err)
	}
}

// get reads an object of which digests are kept. It is not changed.
func (l *Lookup) get(ctx context.Context, o Object, obj client.Object) error {
	return l.Digests.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj, client.UnsafeDisableDeepCopy) //nolint:wrapcheck // the caller says what for
}
