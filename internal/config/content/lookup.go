package content

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Source is where config is read, and which of it may be read.
type Source struct {
	// Digests reads ConfigMaps and Secrets reduced by [Digest].
	Digests client.Reader
	// Values reads ConfigMaps and Secrets as they are, from the API server.
	Values client.Reader
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
}

// Lacks says what a Pod cannot start without and does not exist, each as a clause.
func Lacks(ctx context.Context, reader client.Reader, namespace string, pod *corev1.PodSpec) ([]string, error) {
	l := Source{Digests: Digesting(reader)}.Lookup()
	k := Known{demand: Demand{Namespace: namespace, Uses: References(namespace, pod, nil, false)}, facts: Facts{}}
	for _, ref := range k.demand.Uses {
		f, err := l.factOf(ctx, ref.Object)
		if err != nil {
			return nil, err
		}
		k.facts[ref.Object] = f
	}
	var lacks []string
	for _, m := range k.Missing() {
		lacks = append(lacks, m.String(namespace))
	}
	return lacks, nil
}

// Lookup begins a pass.
func (s Source) Lookup() *Lookup { return &Lookup{Source: s, facts: Facts{}} }

// Observe brings what is known of a workload's config up to date, as far as
// digests tell; version is that of the workload. It returns true if config that
// counts has changed since the last time.
func (l *Lookup) Observe(ctx context.Context, k *Known, version string, d Demand) (bool, error) {
	if l.isUnchanged(ctx, k, version) {
		return false, nil
	}
	k.demand, k.denied, k.version, k.facts = d, nil, version, Facts{}
	for _, ref := range slices.Concat(d.Uses, d.Wave) {
		if _, done := k.facts[ref.Object]; done {
			continue
		}
		f, denied, err := l.find(ctx, d.Namespace, ref.Object)
		if err != nil {
			return false, err
		}
		k.facts[ref.Object] = f
		if denied != "" {
			k.denied = append(k.denied, denied)
		}
	}
	return k.refresh(), nil
}

// isUnchanged is true if neither the workload nor anything that it uses has
// changed since the last pass, so that all that is known still holds.
func (l *Lookup) isUnchanged(ctx context.Context, k *Known, version string) bool {
	if k.facts == nil || k.version != version || len(k.denied) > 0 {
		return false
	}
	for o, known := range k.facts {
		if f, err := l.factOf(ctx, o); err != nil || f.version != known.version {
			return false
		}
	}
	return true
}

// find returns the fact of an object, and a sentence if it must not be read.
func (l *Lookup) find(ctx context.Context, namespace string, o Object) (fact, string, error) {
	if len(l.Namespaces) > 0 && !slices.Contains(l.Namespaces, o.Namespace) {
		return fact{}, fmt.Sprintf("%s is in a namespace that the manager does not watch; add it to --namespaces", o.From(namespace)), nil
	}
	f, err := l.factOf(ctx, o)
	if apierrors.IsForbidden(err) {
		return fact{}, forbidden(o, namespace), nil
	}
	if err != nil {
		return fact{}, "", err
	}
	if o.Namespace != namespace && !l.AllowCrossNamespace && !f.isSharedWith(namespace) {
		return fact{}, fmt.Sprintf("%s is not shared with namespace %s; annotate it with %s: %s",
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
	obj := o.Kind.New()
	err := l.Digests.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, obj)
	switch {
	case err == nil:
		return factOf(obj), nil
	case apierrors.IsNotFound(err):
		return fact{}, nil
	default:
		return fact{}, fmt.Errorf("get %s: %w", o.From(""), err)
	}
}
