package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	defaultInterval = 10 * time.Minute
	defaultTimeout  = 5 * time.Minute
	// retryAtMost is how long Flux waits at most before it tries again what failed.
	retryAtMost = time.Minute
)

// kustomizationName is the name of the Kustomization that a sync has been made into, or
// is to be.
func (o *Observed) kustomizationName(sync string) string {
	name, former := KustomizationName(&o.Assemblage, sync), FormerKustomizationName(&o.Assemblage, sync)
	if k := o.Kustomizations[former]; !o.isOurs(o.Kustomizations[name]) && o.isOurs(k) {
		return former
	}
	return name
}

// KustomizationName is the name of the Kustomization that a sync is made into, unless
// there is one of [FormerKustomizationName].
func KustomizationName(a *Assemblage, sync string) string { return nameOf(a.parts(sync)) }

// FormerKustomizationName is the name that the Kustomization of a sync has kept if it was
// made before names told all syncs apart. By another name it would be another one, and
// what runs would be deleted with it.
func FormerKustomizationName(a *Assemblage, sync string) string { return formerNameOf(a.parts(sync)) }

// parts are those of the name of a Kustomization.
func (a *Assemblage) parts(sync string) (first, second string) {
	if a.isRemote() {
		return sync, a.Name
	}
	return a.Name, sync
}

// isOurs is true of a Kustomization that belongs to the assemblage.
func (o *Observed) isOurs(k *kustomizev1.Kustomization) bool {
	return k != nil && slices.ContainsFunc(k.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.Assemblage.UID })
}

// expandSource is the source that a sync fetches from, nil if the sync refers to a source of the user.
func expandSource(a *Assemblage, s *Sync) (*unstructured.Unstructured, error) {
	if s.SourceRef != nil {
		return nil, nil //nolint:nilnil // there is none to be made
	}
	key := sourceKey(s)
	head := metav1.ObjectMeta{Namespace: a.Namespace, Name: key.Name, Labels: map[string]string{vocabulary.SharedSource.Native: "true"}}
	interval := metav1.Duration{Duration: defaultInterval}
	if oci := s.Source.OCI; oci != nil {
		repository := &sourcev1.OCIRepository{ObjectMeta: head, Spec: sourcev1.OCIRepositorySpec{
			URL: oci.URL, Interval: interval, SecretRef: secretRef(oci.SecretRef),
			Reference: &sourcev1.OCIRepositoryRef{Tag: oci.Version.Tag, Digest: oci.Version.Digest},
		}}
		if err := fluxspec.AddTo(&repository.Spec, oci.Spec); err != nil {
			return nil, err
		}
		return applicable(repository, key.Kind)
	}
	git := s.Source.Git
	repository := &sourcev1.GitRepository{ObjectMeta: head, Spec: sourcev1.GitRepositorySpec{
		URL: git.URL, Interval: interval, SecretRef: secretRef(git.SecretRef),
		Reference: &sourcev1.GitRepositoryRef{Tag: git.Version.Tag, Commit: git.Version.Revision},
	}}
	if err := fluxspec.AddTo(&repository.Spec, git.Spec); err != nil {
		return nil, err
	}
	return applicable(repository, key.Kind)
}

func secretRef(ref *v1alpha1.LocalReference) *meta.LocalObjectReference {
	if ref == nil {
		return nil
	}
	return &meta.LocalObjectReference{Name: ref.Name}
}

// expandKustomization is what has Flux apply a sync, by a name.
func (o *Observed) expandKustomization(s *Sync, name string, substitute map[string]string) (*unstructured.Unstructured, error) {
	a := &o.Assemblage
	key, interval := sourceKey(s), durationOr(s.Interval, defaultInterval)
	yes := true
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: a.GroupVersion().String(), Kind: a.Kind, Name: a.Name, UID: a.UID, Controller: &yes,
			}},
		},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: interval}, RetryInterval: &metav1.Duration{Duration: min(interval, retryAtMost)},
			Timeout: &metav1.Duration{Duration: durationOr(s.Timeout, defaultTimeout)},
			Prune:   s.Prune == nil || *s.Prune, DeletionPolicy: deletionPolicy(s),
			SourceRef:        kustomizev1.CrossNamespaceSourceReference{Kind: key.Kind, Name: key.Name},
			HealthCheckExprs: healthCheckExprs(s),
		},
	}
	if len(substitute) > 0 {
		k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: substitute}
	}
	if p := s.Package; p != nil && p.Kustomize != nil {
		k.Spec.Path = p.Kustomize.Path
		if err := fluxspec.AddTo(&k.Spec, p.Kustomize.Spec); err != nil {
			return nil, err
		}
	}
	for _, sync := range s.DependsOn { // besides what it says itself, which may be any Kustomization
		k.Spec.DependsOn = append(k.Spec.DependsOn, kustomizev1.DependencyReference{Name: o.kustomizationName(sync)})
	}
	if a.isRemote() {
		k.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: a.Secret, Key: cluster.KubeconfigKey}}
	}
	u, err := applicable(k, kustomizev1.KustomizationKind)
	if err != nil {
		return nil, err
	}
	wait := s.Wait == nil || *s.Wait // said also where it is false, which JSON would leave out
	return u, hash(u, unstructured.SetNestedField(u.Object, wait, "spec", "wait"))
}

func durationOr(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

func deletionPolicy(s *Sync) string {
	if s.DeletionPolicy == v1alpha1.Orphan {
		return kustomizev1.DeletionPolicyOrphan
	}
	return kustomizev1.DeletionPolicyDelete
}

func healthCheckExprs(s *Sync) []kustomize.CustomHealthCheck {
	var all []kustomize.CustomHealthCheck
	for _, e := range s.HealthCheckExprs {
		all = append(all, kustomize.CustomHealthCheck{
			APIVersion: e.APIVersion, Kind: e.Kind,
			HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: e.Current, InProgress: e.InProgress, Failed: e.Failed},
		})
	}
	return all
}

// applicable is an object as it is applied: without what is not said about it.
func applicable(obj runtime.Object, kind string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{Object: content}
	gv := sourcev1.GroupVersion
	if kind == kustomizev1.KustomizationKind {
		gv = kustomizev1.GroupVersion
	}
	u.SetGroupVersionKind(gv.WithKind(kind))
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, hash(u, nil)
}

// hash notes on an object what it was applied as.
func hash(u *unstructured.Unstructured, err error) error {
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.GetKind(), err)
	}
	annotations := u.GetAnnotations()
	delete(annotations, vocabulary.AppliedHash.Native)
	u.SetAnnotations(annotations)
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.GetKind(), err)
	}
	u.SetAnnotations(map[string]string{vocabulary.AppliedHash.Native: hashOf(raw)})
	return nil
}

// isApplied is true if an object is what it was applied as: nothing of that was
// changed, and nothing else is wanted.
func isApplied(wanted, live *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"metadata", "annotations"}, {"metadata", "labels"}, {"spec"}} {
		want, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		have, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		if !contains(have, want) {
			return false
		}
	}
	return true
}

// contains returns true if have has all that is wanted; maps may have more.
func contains(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		in, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0
		}
		for key := range want {
			if !contains(in[key], want[key]) {
				return false
			}
		}
		return true
	case []any:
		in, ok := have.([]any)
		return ok && slices.EqualFunc(in, want, contains)
	default:
		return have == want
	}
}

// evaluate evaluates the bindings of a sync, and what it substitutes.
func evaluate(a *Assemblage, s *Sync, known binding.Known) (substitute map[string]string, r binding.Result) {
	predefined := binding.Values{}
	if a.Cluster != "" {
		predefined[binding.ClusterName] = a.Cluster
	}
	r = binding.Evaluate(Bindings(s.Bindings), predefined, known)
	if r.Err != nil || len(r.Needs) > 0 || s.Package == nil || s.Package.Kustomize == nil {
		return nil, r
	}
	substitute = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Package.Kustomize.Substitute)) {
		value, err := r.Values.Expand(s.Package.Kustomize.Substitute[name])
		if err != nil {
			r.Err = fmt.Errorf("substitute %s: %w", message.Quote(name), err)
			return nil, r
		}
		substitute[name] = value
	}
	return substitute, r
}

// Bindings are those of the API in the terms of package binding.
func Bindings(all []v1alpha1.Binding) []binding.Binding {
	bindings := make([]binding.Binding, 0, len(all))
	for _, b := range all {
		evaluable := binding.Binding{Name: b.Name}
		if b.Value != nil {
			evaluable.Value = *b.Value
		}
		if ref := b.ObjectFieldRef; ref != nil {
			apiVersion := ref.APIVersion
			if apiVersion == "" {
				apiVersion = "v1"
			}
			evaluable.Field = &binding.Field{Object: binding.Object{APIVersion: apiVersion, Kind: ref.Kind, Name: ref.Name}, Path: ref.FieldPath}
		}
		bindings = append(bindings, evaluable)
	}
	return bindings
}

// sourceKey is the source that a sync fetches from.
func sourceKey(s *Sync) SourceKey {
	switch {
	case s.SourceRef != nil:
		return SourceKey{s.SourceRef.Kind, s.SourceRef.Name}
	case s.Source.OCI != nil:
		return SourceKey{sourcev1.OCIRepositoryKind, hashedName(s.Name, s.Source)}
	default:
		return SourceKey{sourcev1.GitRepositoryKind, hashedName(s.Name, s.Source)}
	}
}

// content is an object as it is compared.
func content(obj runtime.Object) *unstructured.Unstructured {
	c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return &unstructured.Unstructured{Object: c}
}
