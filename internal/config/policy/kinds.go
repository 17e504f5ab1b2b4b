package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/kube"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=configpolicies;clusterconfigpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=clusterconfigpolicies,verbs=create
// +kubebuilder:rbac:groups=spillway.dev,resources=configpolicies/status;clusterconfigpolicies/status,verbs=update

// KindOf is a kind of policy.
type KindOf struct {
	Name   string
	Object client.Object

	list client.ObjectList
}

// Attributed are the kinds of which a cache keeps who has written them, for [Policy.TracksSince].
func Attributed() []client.Object {
	return []client.Object{&v1alpha1.ConfigPolicy{}, &v1alpha1.ClusterConfigPolicy{}}
}

// KindsFor are the kinds of the policies for a manager of some namespaces. It has no permission
// for what is in none, and would not know all releases of a ClusterConfigPolicy.
func KindsFor(namespaces []string) []KindOf {
	kinds := []KindOf{{Kind, &v1alpha1.ConfigPolicy{}, &v1alpha1.ConfigPolicyList{}}}
	if len(namespaces) == 0 {
		kinds = append(kinds, KindOf{ClusterKind, &v1alpha1.ClusterConfigPolicy{}, &v1alpha1.ClusterConfigPolicyList{}})
	}
	return kinds
}

// Records is the kind of the records of what has failed, which is watched as policies are.
func Records() KindOf {
	return KindOf{verdict.Kind, &v1alpha1.ConfigRollout{}, &v1alpha1.ConfigRolloutList{}}
}

// Kinds are the kinds of policies that can be read: those that are installed and permitted.
// They may become more while a manager runs. The zero value has none, and it is safe for
// concurrent use.
type Kinds struct {
	mu    sync.Mutex
	kinds []KindOf
	// gates is true if RolloutGates can be read, records if ConfigRollouts can.
	gates, records bool
	// each are called with each of kinds.
	each []func(KindOf) error
}

// Add adds a kind that can be read from now on.
func (k *Kinds) Add(kind KindOf) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind.Name == verdict.Kind {
		k.records = true
		return nil
	}
	k.kinds = append(slices.Clip(k.kinds), kind)
	for _, f := range k.each {
		err = errors.Join(err, f(kind))
	}
	return err
}

// Each calls a function with each kind of policies that can be read: now, or once it can be.
func (k *Kinds) Each(f func(KindOf) error) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.each = append(k.each, f)
	for _, kind := range k.kinds {
		err = errors.Join(err, f(kind))
	}
	return err
}

func (k *Kinds) hasRecords() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.records
}

func (k *Kinds) readable() []KindOf {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kinds
}

// Reader reads the policies of these kinds.
func (k *Kinds) Reader(reader client.Reader) *Reader { return &Reader{reader: reader, kinds: k} }

// ErrNotInstalled is that the API server does not know a kind.
var ErrNotInstalled = errors.New("the kind is not installed")

// Verify is nil if policies of a kind can be read, in all namespaces of a manager. It is
// [ErrNotInstalled], or says that it is forbidden, if they cannot.
func (k KindOf) Verify(ctx context.Context, mapper apimeta.RESTMapper, reader client.Reader, namespaces []string) error {
	_, err := mapper.RESTMapping(v1alpha1.GroupVersion.WithKind(k.Name).GroupKind(), v1alpha1.GroupVersion.Version)
	if apimeta.IsNoMatchError(err) {
		return ErrNotInstalled
	}
	if err != nil {
		return fmt.Errorf("look for the kind %s: %w", k.Name, err)
	}
	for _, namespace := range kube.OrAll(namespaces) {
		list, _ := k.list.DeepCopyObject().(client.ObjectList)
		err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
		if apierrors.IsNotFound(err) { // it is being installed
			return ErrNotInstalled
		}
		if err != nil {
			return fmt.Errorf("list one %s: %w", k.Name, err)
		}
	}
	return nil
}
