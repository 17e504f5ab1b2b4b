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
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	strict "sigs.k8s.io/json"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/nearest"
)

// part is where a sync hands something through to one kind of Flux.
type part struct {
	// field is where it stands in the sync.
	field, kind string
	// spec makes an empty one of the kind.
	spec func() any
	// places says of the fields that Spillway sets where a user says them; empty where there is no such place.
	places map[string]string
}

// Fields that most kinds of Flux have.
const (
	suspend  = "suspend"
	interval = "interval"
)

var (
	kustomization = part{"package.kustomize.spec", kustomizev1.KustomizationKind, func() any { return &kustomizev1.KustomizationSpec{} }, map[string]string{
		interval: interval, "timeout": "timeout", "prune": "prune", "wait": "wait", "healthCheckExprs": "healthCheckExprs",
		"path": "package.kustomize.path", "sourceRef": "source", "kubeConfig": "", "deletionPolicy": "", suspend: "",
		"postBuild.substitute": "package.kustomize.substitute",
	}}
	helmRelease = part{"package.helm.spec", helmv2.HelmReleaseKind, func() any { return &helmv2.HelmReleaseSpec{} }, map[string]string{
		interval: interval, "timeout": "timeout", "healthCheckExprs": "healthCheckExprs", "chart": "source", "chartRef": "source",
		"values": "package.helm.values", "install.disableWait": "wait", "upgrade.disableWait": "wait", "kubeConfig": "", suspend: "",
	}}
	helmChart = part{"package.helm.chart", sourcev1.HelmChartKind, func() any { return &sourcev1.HelmChartSpec{} }, map[string]string{
		"chart": "source.helm.chart", "version": "source.helm.version", "sourceRef": "source", interval: "", "reconcileStrategy": "", suspend: "",
	}}
	gitRepository = part{"source.git.spec", sourcev1.GitRepositoryKind, func() any { return &sourcev1.GitRepositorySpec{} }, map[string]string{ //nolint:gosec // names of fields
		"url": "source.git.url", "ref": "source.git.version", "secretRef": "source.git.secretRef", suspend: "",
	}}
	ociRepository = part{"source.oci.spec", sourcev1.OCIRepositoryKind, func() any { return &sourcev1.OCIRepositorySpec{} }, map[string]string{ //nolint:gosec // names of fields
		"url": "source.oci.url", "ref": "source.oci.version", "secretRef": "source.oci.secretRef", suspend: "",
	}}
	bucket = part{"source.bucket.spec", sourcev1.BucketKind, func() any { return &sourcev1.BucketSpec{} }, map[string]string{
		"endpoint": "source.bucket.endpoint", "bucketName": "source.bucket.bucketName", "prefix": "source.bucket.prefix", "secretRef": "source.bucket.secretRef", suspend: "",
	}}
	helmRepository = part{"source.helm.spec", sourcev1.HelmRepositoryKind, func() any { return &sourcev1.HelmRepositorySpec{} }, map[string]string{ //nolint:gosec // names of fields
		"url": "source.helm.url", "secretRef": "source.helm.secretRef", "type": "", suspend: "",
	}}
)

// IsEmpty is true if nothing is handed through.
func IsEmpty(raw *runtime.RawExtension) bool { return raw == nil || len(raw.Raw) == 0 }

// Problems are the mistakes in what a sync hands through, each of which begins with its field.
// The path is that of the sync.
func Problems(path string, source *v1alpha1.Source, pkg *v1alpha1.Package, options *v1alpha1.SyncOptions) []string {
	if source == nil {
		source = &v1alpha1.Source{}
	}
	var problems []string
	if source.Git != nil {
		problems = gitRepository.problems(path, source.Git.Spec)
	}
	if source.OCI != nil {
		problems = append(problems, ociRepository.problems(path, source.OCI.Spec)...)
	}
	if source.Helm != nil {
		problems = append(problems, helmRepository.problems(path, source.Helm.Spec)...)
	}
	if source.Bucket != nil {
		problems = append(problems, bucket.problems(path, source.Bucket.Spec)...)
	}
	if pkg != nil && pkg.Kustomize != nil {
		problems = append(problems, kustomization.problems(path, pkg.Kustomize.Spec)...)
	}
	if helm := HelmOf(source, pkg); helm != nil {
		problems = append(problems, helmRelease.problems(path, helm.Spec)...)
		problems = append(problems, helmChart.problems(path, helm.Chart)...)
		problems = append(problems, contradictions(path, source, pkg, helm, options)...)
	}
	return problems
}

// HelmOf is how a sync is installed with Helm, nil if it is not: a chart of a Helm repository
// needs no package that says so.
func HelmOf(source *v1alpha1.Source, pkg *v1alpha1.Package) *v1alpha1.Helm {
	switch {
	case pkg != nil && pkg.Helm != nil:
		return pkg.Helm
	case source != nil && source.Helm != nil:
		return &v1alpha1.Helm{}
	default:
		return nil
	}
}

// contradictions are fields of a sync that Helm cannot do, or that say nothing with this source.
func contradictions(path string, source *v1alpha1.Source, pkg *v1alpha1.Package, helm *v1alpha1.Helm, options *v1alpha1.SyncOptions) []string {
	var problems []string
	if pkg != nil && pkg.Kustomize != nil {
		problems = append(problems, join(path, "package.kustomize")+": a chart is installed with Helm; use package.helm")
	}
	if options.Prune != nil && !*options.Prune {
		problems = append(problems, join(path, "prune")+": Helm always deletes what a chart no longer has; remove it")
	}
	if helm.Path != "" && helm.Path != "." && (source.OCI != nil || source.Helm != nil) {
		problems = append(problems, join(path, "package.helm.path")+": only a chart in a Git repository or bucket has one; remove it")
	}
	if !IsEmpty(helm.Chart) && source.OCI != nil {
		problems = append(problems, join(path, "package.helm.chart")+": there is no HelmChart of an OCI artifact; remove it, or use source.helm with the URL oci://...")
	}
	if !IsEmpty(helm.Values) {
		if err := json.Unmarshal(helm.Values.Raw, &map[string]json.RawMessage{}); err != nil {
			problems = append(problems, join(path, "package.helm.values")+": not an object")
		}
	}
	return problems
}

// Err is the first mistake in what a sync hands through, nil if there is none.
func Err(source *v1alpha1.Source, pkg *v1alpha1.Package, options *v1alpha1.SyncOptions) error {
	if problems := Problems("", source, pkg, options); len(problems) > 0 {
		return errors.New(problems[0])
	}
	return nil
}

func (p *part) problems(path string, raw *runtime.RawExtension) []string {
	if IsEmpty(raw) {
		return nil
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw.Raw, &given); err != nil {
		return []string{join(path, p.field) + ": not an object with fields of the " + p.kind + " of Flux"}
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(p.places)) {
		if says(given, name) {
			problems = append(problems, join(path, p.field, name)+": "+elsewhere(path, p.places[name]))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	unknown, err := strict.UnmarshalStrict(raw.Raw, p.spec())
	for _, e := range append(unknown, err) {
		if e != nil {
			problems = append(problems, p.mistake(path, e))
		}
	}
	return problems
}

// says reports whether a field is given, at the top or beneath another one.
func says(given map[string]json.RawMessage, field string) bool {
	name, rest, nested := strings.Cut(field, ".")
	if _, said := given[name]; !said || !nested {
		return said
	}
	inner := map[string]json.RawMessage{}
	return json.Unmarshal(given[name], &inner) == nil && says(inner, rest)
}

// elsewhere says of a field where a user says it.
func elsewhere(path, place string) string {
	if place == "" {
		return "Spillway sets it; remove it"
	}
	return "Spillway sets it; remove it, and say it in " + join(path, place)
}

// mistake says in which field a mistake is that a decoder has found.
func (p *part) mistake(path string, err error) string {
	var unknown strict.FieldError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unknown):
		text := fmt.Sprintf("%s: the %s of Flux has no such field", join(path, p.field, unknown.FieldPath()), p.kind)
		if meant := nearest.Meant(unknown.FieldPath(), fieldsOf(p.spec())); meant != "" {
			text += "; it has " + meant
		}
		return text
	case errors.As(err, &typed):
		return fmt.Sprintf("%s: it is of type %s, not %s", join(path, p.field, typed.Field), typed.Type, typed.Value)
	default:
		return join(path, p.field) + ": " + err.Error()
	}
}

// fieldsOf are the names of the fields of a spec.
func fieldsOf(spec any) []string {
	var names []string
	for f := range reflect.TypeOf(spec).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Place is where in a sync a user says a field of Flux, empty if there is none of that name.
func Place(field string) string {
	for _, p := range []part{kustomization, gitRepository, ociRepository, helmRelease, helmChart, helmRepository, bucket} {
		place, set := p.places[field]
		switch {
		case place != "":
			return place
		case !set && slices.Contains(fieldsOf(p.spec()), field):
			return join(p.field, field)
		}
	}
	return ""
}

func join(path ...string) string {
	return strings.Join(slices.DeleteFunc(path, func(p string) bool { return p == "" }), ".")
}

// AddTo adds what is handed through to a spec that has what Spillway sets. It must have no
// [Problems].
func AddTo(spec any, raw *runtime.RawExtension) error {
	if IsEmpty(raw) {
		return nil
	}
	if err := json.Unmarshal(raw.Raw, spec); err != nil {
		return fmt.Errorf("decode what is handed to Flux: %w", err)
	}
	return nil
}

// EachText replaces each text in a value, of whatever depth, by what a function makes of it.
func EachText(value any, replace func(string) (string, error)) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		return replace(value)
	case map[string]any:
		for key := range value {
			if value[key], err = EachText(value[key], replace); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	case []any:
		for i := range value {
			if value[i], err = EachText(value[i], replace); err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
		}
	}
	return value, nil
}

// Texts are those in the values of a chart.
func Texts(values *runtime.RawExtension) []string {
	if IsEmpty(values) {
		return nil
	}
	var decoded map[string]any
	if json.Unmarshal(values.Raw, &decoded) != nil {
		return nil // which is one of [Problems]
	}
	var texts []string
	_, _ = EachText(decoded, func(text string) (string, error) { // which never fails
		texts = append(texts, text)
		return text, nil
	})
	return texts
}
