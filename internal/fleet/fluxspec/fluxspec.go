package fluxspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

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

var (
	kustomization = part{"package.kustomize.spec", kustomizev1.KustomizationKind, func() any { return &kustomizev1.KustomizationSpec{} }, map[string]string{
		"interval": "interval", "timeout": "timeout", "prune": "prune", "wait": "wait", "healthCheckExprs": "healthCheckExprs",
		"path": "package.kustomize.path", "sourceRef": "source", "kubeConfig": "", "deletionPolicy": "", "suspend": "",
	}}
	gitRepository = part{"source.git.spec", sourcev1.GitRepositoryKind, func() any { return &sourcev1.GitRepositorySpec{} }, map[string]string{ //nolint:gosec // names of fields
		"url": "source.git.url", "ref": "source.git.version", "secretRef": "source.git.secretRef", "suspend": "",
	}}
	ociRepository = part{"source.oci.spec", sourcev1.OCIRepositoryKind, func() any { return &sourcev1.OCIRepositorySpec{} }, map[string]string{ //nolint:gosec // names of fields
		"url": "source.oci.url", "ref": "source.oci.version", "secretRef": "source.oci.secretRef", "suspend": "",
	}}
)

// substitute is the only field beneath another one that has a place of its own.
const substitute = "substitute"

// IsEmpty is true if nothing is handed through.
func IsEmpty(raw *runtime.RawExtension) bool { return raw == nil || len(raw.Raw) == 0 }

// Problems are the mistakes in what a sync hands through, each of which begins with its field.
// The path is that of the sync.
func Problems(path string, source *v1alpha1.Source, pkg *v1alpha1.Package) []string {
	var problems []string
	if source != nil && source.Git != nil {
		problems = gitRepository.problems(path, source.Git.Spec)
	}
	if source != nil && source.OCI != nil {
		problems = append(problems, ociRepository.problems(path, source.OCI.Spec)...)
	}
	if pkg != nil && pkg.Kustomize != nil {
		problems = append(problems, kustomization.problems(path, pkg.Kustomize.Spec)...)
	}
	return problems
}

// Err is the first mistake in what a sync hands through, nil if there is none.
func Err(source *v1alpha1.Source, pkg *v1alpha1.Package) error {
	if problems := Problems("", source, pkg); len(problems) > 0 {
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
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if place, set := p.places[name]; set {
			problems = append(problems, join(path, p.field, name)+": "+elsewhere(path, place))
		}
	}
	build := map[string]json.RawMessage{}
	if err := json.Unmarshal(given["postBuild"], &build); err == nil && build[substitute] != nil {
		problems = append(problems, join(path, p.field, "postBuild", substitute)+": "+elsewhere(path, "package.kustomize.substitute"))
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
	for _, p := range []part{kustomization, gitRepository, ociRepository} {
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
