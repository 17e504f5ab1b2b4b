package fluxspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
)

// SyncOf is the sync that is made into the same Kustomization and source, and what of these has no
// place in it, each with its field. The source is what the Kustomization fetches from; it is an
// error if it is of a kind that modules do not fetch from, or was never fetched where it follows what moves.
func SyncOf(k *kustomizev1.Kustomization, source client.Object) (v1alpha1.Sync, []string, error) {
	i := importing{namespace: k.Namespace}
	sync := v1alpha1.Sync{
		Package: &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Path: k.Spec.Path, Substitute: substitutes(k), Spec: i.rest(&kustomization, "spec.", &k.Spec)}},
		Source:  i.source(source),
		SyncOptions: v1alpha1.SyncOptions{
			Interval: &k.Spec.Interval, Timeout: k.Spec.Timeout, Prune: &k.Spec.Prune, Wait: &k.Spec.Wait, HealthCheckExprs: healthChecks(k.Spec.HealthCheckExprs),
		},
	}
	return sync, i.notes, i.err
}

// SyncOfRelease is the sync that is made into the same HelmRelease, chart and source, as [SyncOf] says. The
// chart is nil where the source is one: an OCIRepository.
func SyncOfRelease(r *helmv2.HelmRelease, chart *sourcev1.HelmChartSpec, source client.Object) (v1alpha1.Sync, []string, error) {
	i := importing{namespace: r.Namespace}
	sync := v1alpha1.Sync{
		Package: &v1alpha1.Package{Helm: &v1alpha1.Helm{Values: i.literal(r.Spec.Values), Spec: i.rest(&helmRelease, "spec.", named(r))}},
		Source:  i.source(source),
		SyncOptions: v1alpha1.SyncOptions{
			Interval: &r.Spec.Interval, Timeout: r.Spec.Timeout, Wait: new(!r.GetUpgrade().DisableWait), HealthCheckExprs: healthChecks(r.Spec.HealthCheckExprs),
		},
	}
	if r.GetInstall().DisableWait != r.GetUpgrade().DisableWait {
		i.notef("spec.install.disableWait: it differs from spec.upgrade.disableWait, which is used for both")
	}
	if r.Spec.Chart != nil && r.Spec.Chart.ObjectMeta != nil {
		i.notef("spec.chart.metadata: the HelmChart has no labels and annotations of the user")
	}
	if chart != nil && sync.Source != nil {
		i.chart(&sync, r.Status.History.Latest(), chart)
	}
	return sync, i.notes, i.err
}

// named is the spec of a HelmRelease with the name of the release of Helm, which is what the module goes on with. If
// it is not said, it depends on the name of the HelmRelease.
func named(r *helmv2.HelmRelease) *helmv2.HelmReleaseSpec {
	spec := r.Spec.DeepCopy()
	if newest := r.Status.History.Latest(); newest != nil {
		spec.ReleaseName = newest.Name
	}
	return spec
}

// ChartOf is the HelmChart that Flux makes of the template in a HelmRelease.
func ChartOf(template *helmv2.HelmChartTemplateSpec) *sourcev1.HelmChartSpec {
	spec := &sourcev1.HelmChartSpec{
		Chart: template.Chart, Version: template.Version, ReconcileStrategy: template.ReconcileStrategy,
		ValuesFiles: template.ValuesFiles, IgnoreMissingValuesFiles: template.IgnoreMissingValuesFiles,
	}
	if template.Interval != nil {
		spec.Interval = *template.Interval
	}
	if verify := template.Verify; verify != nil {
		spec.Verify = &sourcev1.HelmChartVerification{Provider: verify.Provider, SecretRef: verify.SecretRef}
	}
	return spec
}

// importing notes what has no place in a sync, and the first error.
type importing struct {
	namespace string
	notes     []string
	err       error
}

func (i *importing) notef(format string, args ...any) {
	i.notes = append(i.notes, fmt.Sprintf(format, args...))
}

func (i *importing) fail(err error) {
	if i.err == nil {
		i.err = err
	}
}

// chart is the chart of a sync, as a HelmChart has it. What moves is the version that was installed last.
func (i *importing) chart(sync *v1alpha1.Sync, newest *helmv2.Snapshot, chart *sourcev1.HelmChartSpec) {
	sync.Package.Helm.Chart = i.rest(&helmChart, "chart ", chart)
	from := sync.Source.Helm
	if from == nil {
		if sync.Package.Helm.Path = chart.Chart; chart.ReconcileStrategy != sourcev1.ReconcileStrategyRevision {
			i.notef("chart reconcileStrategy: the version of the chart has the commit in it from now on; a chart that writes its version into Pods restarts these when it is taken over")
		}
		return
	}
	if from.Chart, from.Version = chart.Chart, chart.Version; !sync.Source.Moves() {
		return
	}
	if newest == nil {
		i.fail(errors.New("status.history: the chart was not installed yet, so it is not known at which version it is"))
		return
	}
	from.Version = newest.ChartVersion
	i.moves("version "+chart.Version, "the version "+newest.ChartVersion)
}

// source is a source of Flux at the exact version that was fetched.
func (i *importing) source(of client.Object) *v1alpha1.Source {
	if ns := of.GetNamespace(); ns != i.namespace {
		i.notef("source namespace: it is in namespace %s; the Secrets that it needs must be in that of the module on each cluster", ns)
	}
	switch s := of.(type) {
	case *sourcev1.GitRepository:
		return &v1alpha1.Source{Git: &v1alpha1.GitSource{
			URL: s.Spec.URL, Version: i.gitVersion(s.Spec.Reference, s.Status.Artifact), SecretRef: referenceOf(s.Spec.SecretRef), Spec: i.rest(&gitRepository, sourceField, &s.Spec),
		}}
	case *sourcev1.OCIRepository:
		return &v1alpha1.Source{OCI: &v1alpha1.OCISource{
			URL: s.Spec.URL, Version: i.ociVersion(s.Spec.Reference, s.Status.Artifact), SecretRef: referenceOf(s.Spec.SecretRef), Spec: i.rest(&ociRepository, sourceField, &s.Spec),
		}}
	case *sourcev1.HelmRepository:
		return &v1alpha1.Source{Helm: &v1alpha1.HelmSource{URL: s.Spec.URL, SecretRef: referenceOf(s.Spec.SecretRef), Spec: i.rest(&helmRepository, sourceField, &s.Spec)}}
	case *sourcev1.Bucket:
		if s.Spec.Prefix == "" {
			i.notef("%sprefix: it is not set, so all clusters follow what changes, at the same time; give each version a prefix of its own, and remove mutable", sourceField)
		}
		return &v1alpha1.Source{Bucket: &v1alpha1.BucketSource{
			Endpoint: s.Spec.Endpoint, BucketName: s.Spec.BucketName, Prefix: s.Spec.Prefix, Mutable: s.Spec.Prefix == "", SecretRef: referenceOf(s.Spec.SecretRef),
			Spec: i.rest(&bucket, sourceField, &s.Spec),
		}}
	default:
		i.fail(fmt.Errorf("the source is of kind %s; modules fetch from a GitRepository, OCIRepository, Bucket or HelmRepository", reflect.TypeOf(of).Elem().Name()))
		return nil
	}
}

// sourceField is how the notes call what a source says.
const sourceField = "source "

func healthChecks(all []kustomize.CustomHealthCheck) (exprs []v1alpha1.HealthCheckExpr) {
	for _, e := range all {
		exprs = append(exprs, v1alpha1.HealthCheckExpr{APIVersion: e.APIVersion, Kind: e.Kind, Current: e.Current, InProgress: e.InProgress, Failed: e.Failed})
	}
	return exprs
}

// substitutes are those of a Kustomization as values that refer to no binding.
func substitutes(k *kustomizev1.Kustomization) map[string]string {
	if k.Spec.PostBuild == nil || len(k.Spec.PostBuild.Substitute) == 0 {
		return nil
	}
	values := maps.Clone(k.Spec.PostBuild.Substitute)
	for name, value := range values {
		values[name] = binding.Escape(value)
	}
	return values
}

// gitVersion is the tag or the commit of a reference. What moves is the commit that was fetched last.
func (i *importing) gitVersion(ref *sourcev1.GitRepositoryRef, fetched *meta.Artifact) v1alpha1.GitVersion {
	switch {
	case ref == nil:
		ref = &sourcev1.GitRepositoryRef{Branch: "master"} // which is Flux's default
	case ref.Commit != "":
		return v1alpha1.GitVersion{Revision: ref.Commit}
	case ref.Tag != "" && ref.SemVer == "" && ref.Name == "":
		return v1alpha1.GitVersion{Tag: ref.Tag}
	}
	name, digest := i.split(fetched)
	if ref.SemVer != "" && ref.Name == "" {
		i.moves("ref.semver "+ref.SemVer, "the tag "+name)
		return v1alpha1.GitVersion{Tag: name}
	}
	_, commit, _ := strings.Cut(digest, ":")
	i.moves("ref", "the commit "+commit+" of "+name)
	return v1alpha1.GitVersion{Revision: commit}
}

func (i *importing) ociVersion(ref *sourcev1.OCIRepositoryRef, fetched *meta.Artifact) v1alpha1.OCIVersion {
	switch {
	case ref == nil:
		return v1alpha1.OCIVersion{Tag: "latest"} // which is Flux's default
	case ref.Digest != "":
		return v1alpha1.OCIVersion{Digest: ref.Digest}
	case ref.SemVer == "":
		return v1alpha1.OCIVersion{Tag: ref.Tag}
	}
	name, _ := i.split(fetched)
	i.moves("ref.semver "+ref.SemVer, "the tag "+name)
	return v1alpha1.OCIVersion{Tag: name}
}

func (i *importing) moves(what, to string) {
	if i.err != nil {
		return // it is not known what it is at
	}
	i.notef("%s%s: it followed what moves; the module is at %s, and rolls out another when you change that", sourceField, what, to)
}

// split takes the revision of an artifact apart: "v1.2.3@sha1:abc".
func (i *importing) split(fetched *meta.Artifact) (name, digest string) {
	if fetched != nil {
		name, digest, _ = strings.Cut(fetched.Revision, "@")
	}
	if name == "" || digest == "" {
		i.fail(errors.New("status.artifact: the source was not fetched yet, so it is not known at which version it is"))
	}
	return name, digest
}

func referenceOf(ref *meta.LocalObjectReference) *v1alpha1.LocalReference {
	if ref == nil {
		return nil
	}
	return &v1alpha1.LocalReference{Name: ref.Name}
}

// unsaid are the fields that have no place in a sync, and what to know of one that is said.
var unsaid = map[string]string{
	suspend:          "it is suspended; the module applies it to each cluster that it selects",
	"kubeConfig":     "it is applied to another cluster; register that one, and use kind BootstrapModule if the Flux of the hub is to go on applying it",
	"deletionPolicy": "it is not taken over; spec.deletionPolicy of the module says Delete or Orphan",
	interval:         "it is not taken over; the version of the chart stays as it is",
}

// isDefault are values that say what is so where nothing is said.
func isDefault(value any) bool {
	return value == nil || value == false || value == "0s" || value == kustomizev1.DeletionPolicyMirrorPrune
}

// rest is what a spec of Flux says besides the fields that have a place of their own, nil if it is nothing.
func (i *importing) rest(p *part, called string, spec any) *runtime.RawExtension {
	said := map[string]any{}
	data, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(data, &said)
	}
	if err != nil {
		i.fail(fmt.Errorf("encode a %s of Flux: %w", p.kind, err))
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(p.places)) {
		if text := unsaid[field]; text != "" && p.places[field] == "" && !isDefault(said[field]) {
			i.notef("%s%s: %s", called, field, text)
		}
		drop(said, field)
	}
	if _, ok := said["dependsOn"]; ok {
		i.notef("%sdependsOn: each is a %s of the cluster; one that becomes a module, too, is named in dependsOn of the sync", called, p.kind)
	}
	if isDefault(said[interval]) {
		delete(said, interval)
	}
	return i.encoded(said)
}

// encoded is an object as it stands in a sync, nil if it is empty.
func (i *importing) encoded(said map[string]any) *runtime.RawExtension {
	if len(said) == 0 {
		return nil
	}
	data, err := json.Marshal(said)
	i.fail(err)
	return &runtime.RawExtension{Raw: data}
}

// literal are values that refer to no binding.
func (i *importing) literal(values *apiextensionsv1.JSON) *runtime.RawExtension {
	said := map[string]any{}
	if values == nil {
		return nil
	}
	if err := utiljson.Unmarshal(values.Raw, &said); err != nil {
		i.fail(fmt.Errorf("spec.values: %w", err))
	}
	_, _ = EachText(said, func(text string) (string, error) { return binding.Escape(text), nil }) // which never fails
	return i.encoded(said)
}

// drop takes a field away, and what is empty without it.
func drop(said map[string]any, field string) {
	name, rest, nested := strings.Cut(field, ".")
	inner, isObject := said[name].(map[string]any)
	switch {
	case !nested:
		delete(said, name)
	case isObject:
		if drop(inner, rest); len(inner) == 0 {
			delete(said, name)
		}
	}
}
