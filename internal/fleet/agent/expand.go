package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

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
	kind := kustomizev1.KustomizationKind
	if !o.isOurs(o.at(appliedKey{kind, name})) && o.isOurs(o.at(appliedKey{kind, former})) {
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

// keyOf is what a sync has been made into, or is to be.
func (o *Observed) keyOf(s *Sync) appliedKey {
	kind := kustomizev1.KustomizationKind
	if s.helm() != nil {
		kind = helmv2.HelmReleaseKind
	}
	return appliedKey{kind, o.nameOf(kind, s.Name)}
}

// dependencies are what a sync depends on: the names of those of its kind, for which Flux waits, and those of the
// other kind. One that is not assigned counts as of its kind, and Flux says that it does not exist.
func (o *Observed) dependencies(s *Sync) (names []string, others []appliedKey) {
	kind := o.keyOf(s).kind
	for _, on := range s.DependsOn {
		key := appliedKey{kind, o.nameOf(kind, on)}
		if i := slices.IndexFunc(o.Assemblage.Syncs, func(other Sync) bool { return other.Name == on && other.isAssigned() }); i >= 0 {
			key = o.keyOf(&o.Assemblage.Syncs[i])
		}
		if key.kind == kind {
			names = append(names, key.name)
		} else {
			others = append(others, key)
		}
	}
	return names, others
}

func (o *Observed) nameOf(kind, sync string) string {
	if kind == helmv2.HelmReleaseKind {
		return KustomizationName(&o.Assemblage, sync)
	}
	return o.kustomizationName(sync)
}

// expandSources are the sources that a sync fetches from, each of which may need the one before.
func expandSources(a *Assemblage, s *Sync) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, key := range sourceKeys(s) {
		if s.SourceRef != nil && key.Name == s.SourceRef.Name {
			continue // it is the user's
		}
		source, err := expandSource(a, s, key)
		if err != nil {
			return nil, err
		}
		u, err := applicable(source, key.Kind)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// expandSource is a source as it is applied.
func expandSource(a *Assemblage, s *Sync, key SourceKey) (runtime.Object, error) {
	head := metav1.ObjectMeta{Namespace: a.Namespace, Name: key.Name, Labels: map[string]string{vocabulary.SharedSource.Native: "true"}}
	interval := metav1.Duration{Duration: defaultInterval}
	switch key.Kind {
	case sourcev1.OCIRepositoryKind:
		oci := s.Source.OCI
		repository := &sourcev1.OCIRepository{ObjectMeta: head, Spec: sourcev1.OCIRepositorySpec{
			URL: oci.URL, Interval: interval, SecretRef: secretRef(oci.SecretRef),
			Reference: &sourcev1.OCIRepositoryRef{Tag: oci.Version.Tag, SemVer: oci.Version.SemVer, Digest: oci.Version.Digest},
		}}
		if s.helm() != nil { // what a chart in a registry needs, unless the user says otherwise
			repository.Spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: chartLayer, Operation: sourcev1.OCILayerCopy}
		}
		return repository, fluxspec.AddTo(&repository.Spec, oci.Spec)
	case sourcev1.BucketKind:
		from := s.Source.Bucket
		bucket := &sourcev1.Bucket{ObjectMeta: head, Spec: sourcev1.BucketSpec{
			Endpoint: from.Endpoint, BucketName: from.BucketName, Prefix: from.Prefix, Interval: interval, SecretRef: secretRef(from.SecretRef),
		}}
		return bucket, fluxspec.AddTo(&bucket.Spec, from.Spec)
	case sourcev1.HelmRepositoryKind:
		helm := s.Source.Helm
		repository := &sourcev1.HelmRepository{ObjectMeta: head, Spec: sourcev1.HelmRepositorySpec{URL: helm.URL, Interval: interval, SecretRef: secretRef(helm.SecretRef)}}
		if strings.HasPrefix(helm.URL, sourcev1.OCIRepositoryPrefix) {
			repository.Spec.Type = sourcev1.HelmRepositoryTypeOCI
		}
		return repository, fluxspec.AddTo(&repository.Spec, helm.Spec)
	case sourcev1.HelmChartKind:
		chart := &sourcev1.HelmChart{ObjectMeta: head, Spec: chartSpec(s)}
		chart.Spec.Interval = interval
		return chart, fluxspec.AddTo(&chart.Spec, s.helm().Chart)
	default:
		git := s.Source.Git
		repository := &sourcev1.GitRepository{ObjectMeta: head, Spec: sourcev1.GitRepositorySpec{
			URL: git.URL, Interval: interval, SecretRef: secretRef(git.SecretRef),
			Reference: &sourcev1.GitRepositoryRef{Tag: git.Version.Tag, Branch: git.Version.Branch, SemVer: git.Version.SemVer, Commit: git.Version.Revision},
		}}
		return repository, fluxspec.AddTo(&repository.Spec, git.Spec)
	}
}

// chartLayer is the layer of an OCI artifact that a chart is in.
const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chartSpec is which chart a sync installs. A chart of a Git repository has the commit in its
// version, so that another commit is another version.
func chartSpec(s *Sync) sourcev1.HelmChartSpec {
	from := originKey(s)
	spec := sourcev1.HelmChartSpec{SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: from.Kind, Name: from.Name}}
	if s.Source != nil && s.Source.Helm != nil {
		spec.Chart, spec.Version = s.Source.Helm.Chart, s.Source.Helm.Version
		return spec
	}
	spec.Chart, spec.ReconcileStrategy = cmp.Or(s.helm().Path, "."), sourcev1.ReconcileStrategyRevision
	return spec
}

func secretRef(ref *v1alpha1.LocalReference) *meta.LocalObjectReference {
	if ref == nil {
		return nil
	}
	return &meta.LocalObjectReference{Name: ref.Name}
}

// expand is what has Flux apply a sync.
func (o *Observed) expand(s *Sync, key appliedKey, b bound) (u *unstructured.Unstructured, err error) {
	a, yes := &o.Assemblage, true
	head := metav1.ObjectMeta{
		Namespace: a.Namespace, Name: key.name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: a.GroupVersion().String(), Kind: a.Kind, Name: a.Name, UID: a.UID, Controller: &yes}},
	}
	var remote *meta.KubeConfigReference
	if a.isRemote() {
		remote = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: a.Secret, Key: cluster.KubeconfigKey}}
	}
	depends, others := o.dependencies(s)
	if len(others) > 0 {
		var noted []string
		for _, on := range others {
			noted = append(noted, on.kind+"/"+on.name)
		}
		head.Annotations = map[string]string{vocabulary.AppliedAfter.Native: strings.Join(noted, ",")}
	}
	if key.kind == helmv2.HelmReleaseKind {
		return o.expandRelease(s, head, remote, depends, b.values)
	}
	return expandKustomization(s, head, remote, depends, b.substitute)
}

// expandKustomization is the Kustomization of a sync.
func expandKustomization(s *Sync, head metav1.ObjectMeta, remote *meta.KubeConfigReference, depends []string, substitute map[string]string) (*unstructured.Unstructured, error) {
	from, interval := fetchedKey(s), durationOr(s.Interval, defaultInterval)
	k := &kustomizev1.Kustomization{
		ObjectMeta: head,
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: interval}, RetryInterval: &metav1.Duration{Duration: min(interval, retryAtMost)},
			Timeout: &metav1.Duration{Duration: durationOr(s.Timeout, defaultTimeout)},
			Prune:   s.Prune == nil || *s.Prune, DeletionPolicy: deletionPolicy(s),
			SourceRef:        kustomizev1.CrossNamespaceSourceReference{Kind: from.Kind, Name: from.Name},
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
	for _, name := range depends { // besides what it says itself, which may be any Kustomization
		k.Spec.DependsOn = append(k.Spec.DependsOn, kustomizev1.DependencyReference{Name: name})
	}
	k.Spec.KubeConfig = remote
	u, err := applicable(k, kustomizev1.KustomizationKind)
	if err != nil {
		return nil, err
	}
	return u, hash(u, unstructured.SetNestedField(u.Object, waitsFor(s), "spec", "wait"))
}

// expandRelease is the HelmRelease of a sync.
func (o *Observed) expandRelease(s *Sync, head metav1.ObjectMeta, remote *meta.KubeConfigReference, depends []string, values map[string]any) (*unstructured.Unstructured, error) {
	from, live := fetchedKey(s), o.Releases[head.Name]
	head.Annotations = maps.Clone(head.Annotations)
	if head.Annotations == nil {
		head.Annotations = map[string]string{}
	}
	head.Annotations[vocabulary.ReleaseDeletionPolicy.Native] = deletionPolicy(s)
	r := &helmv2.HelmRelease{ObjectMeta: head, Spec: helmv2.HelmReleaseSpec{
		Interval: metav1.Duration{Duration: durationOr(s.Interval, defaultInterval)}, Timeout: &metav1.Duration{Duration: durationOr(s.Timeout, defaultTimeout)},
		ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: from.Kind, Name: from.Name}, HealthCheckExprs: healthCheckExprs(s),
	}}
	if err := fluxspec.AddTo(&r.Spec, s.helm().Spec); err != nil {
		return nil, err
	}
	for _, name := range depends { // besides what it says itself, which may be any HelmRelease
		r.Spec.DependsOn = append(r.Spec.DependsOn, helmv2.DependencyReference{Name: name})
	}
	r.Spec.KubeConfig = remote
	u, err := applicable(r, helmv2.HelmReleaseKind)
	if err != nil {
		return nil, err
	}
	for _, action := range []string{"install", "upgrade"} {
		err = errors.Join(err, unstructured.SetNestedField(u.Object, !waitsFor(s), "spec", action, "disableWait"))
	}
	if len(values) > 0 {
		err = errors.Join(err, unstructured.SetNestedMap(u.Object, values, "spec", "values"))
	}
	if live != nil && (release{live}).policy() == leaving { // it was about to be removed, and is wanted again
		err = errors.Join(err, unstructured.SetNestedField(u.Object, false, "spec", "suspend"))
	}
	return u, hash(u, err)
}

// waitsFor reports whether a sync succeeds only once all that it applies is healthy. It is said also where
// it is false, which JSON would leave out.
func waitsFor(s *Sync) bool { return s.Wait == nil || *s.Wait }

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
	switch kind {
	case kustomizev1.KustomizationKind:
		gv = kustomizev1.GroupVersion
	case helmv2.HelmReleaseKind:
		gv = helmv2.GroupVersion
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
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[vocabulary.AppliedHash.Native] = hashOf(raw)
	u.SetAnnotations(annotations)
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
	case bool: // which the types of Flux leave out where it is false
		is, _ := have.(bool)
		return is == want
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

// bound is what a sync says with its bindings: variables of manifests, or values of a chart.
type bound struct {
	substitute map[string]string
	values     map[string]any
}

// evaluate evaluates the bindings of a sync, and what it says with them.
func evaluate(a *Assemblage, s *Sync, known binding.Known) (b bound, r binding.Result) {
	predefined := binding.Values{}
	if a.Cluster != "" {
		predefined[binding.ClusterName] = a.Cluster
	}
	r = binding.Evaluate(Bindings(s.Bindings), predefined, known)
	switch {
	case r.Err != nil || len(r.Needs) > 0:
	case s.helm() != nil:
		b.values, r.Err = expandValues(s.helm().Values, r.Values)
	case s.Package != nil && s.Package.Kustomize != nil:
		b.substitute, r.Err = expandSubstitutes(s.Package.Kustomize.Substitute, r.Values)
	}
	return b, r
}

func expandSubstitutes(texts map[string]string, values binding.Values) (map[string]string, error) {
	substitute := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		value, err := values.Expand(texts[name])
		if err != nil {
			return nil, fmt.Errorf("substitute %s: %w", message.Quote(name), err)
		}
		substitute[name] = value
	}
	return substitute, nil
}

// expandValues are the values of a chart, with the bindings that their texts refer to.
func expandValues(raw *runtime.RawExtension, values binding.Values) (map[string]any, error) {
	if fluxspec.IsEmpty(raw) {
		return nil, nil //nolint:nilnil // there are none
	}
	expanded := map[string]any{}
	if err := utiljson.Unmarshal(raw.Raw, &expanded); err != nil { // whose numbers are those of the API server
		return nil, fmt.Errorf("values: %w", err)
	}
	_, err := fluxspec.EachText(expanded, func(text string) (string, error) { return values.Expand(text) })
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	return expanded, nil
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

// sourceKeys are the sources of a sync: where it comes from, and the chart that is made of that, if
// it is made by another one.
func sourceKeys(s *Sync) []SourceKey {
	from := originKey(s)
	if s.helm() == nil || from.Kind == sourcev1.OCIRepositoryKind {
		return []SourceKey{from}
	}
	return []SourceKey{from, {sourcev1.HelmChartKind, hashedName(s.Name, []any{chartSpec(s), s.helm().Chart})}}
}

// fetchedKey is the source that what applies a sync fetches from.
func fetchedKey(s *Sync) SourceKey {
	keys := sourceKeys(s)
	return keys[len(keys)-1]
}

// originKey is where a sync comes from. All versions of the charts of a Helm repository come from one.
func originKey(s *Sync) SourceKey {
	switch {
	case s.SourceRef != nil:
		return SourceKey{s.SourceRef.Kind, s.SourceRef.Name}
	case s.Source.Helm != nil:
		helm := *s.Source.Helm
		helm.Chart, helm.Version = "", ""
		return SourceKey{sourcev1.HelmRepositoryKind, hashedName(s.Name, helm)}
	case s.Source.OCI != nil && s.helm() != nil:
		return SourceKey{sourcev1.OCIRepositoryKind, hashedName(s.Name, []any{s.Source, chartLayer})}
	case s.Source.OCI != nil:
		return SourceKey{sourcev1.OCIRepositoryKind, hashedName(s.Name, s.Source)}
	case s.Source.Bucket != nil:
		return SourceKey{sourcev1.BucketKind, hashedName(s.Name, s.Source)}
	default:
		return SourceKey{sourcev1.GitRepositoryKind, hashedName(s.Name, s.Source)}
	}
}

// fetched is the source that is fetched from, nil if there is none. What comes first may say why.
func (o *Observed) fetched(keys []SourceKey) *Source {
	last := o.Sources[keys[len(keys)-1]]
	if from := o.Sources[keys[0]]; last != nil && last.Revision == "" && from != nil && from.isRefused() {
		same := *last
		same.Ready = from.Ready.DeepCopy()
		same.Ready.ObservedGeneration = same.Generation
		return &same
	}
	return last
}

// isRefused reports whether it cannot be fetched, as it is wanted now.
func (s *Source) isRefused() bool {
	return s.Ready != nil && s.Ready.Status == metav1.ConditionFalse && s.Ready.ObservedGeneration == s.Generation
}

// content is an object as it is compared.
func content(obj runtime.Object) *unstructured.Unstructured {
	c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return &unstructured.Unstructured{Object: c}
}
