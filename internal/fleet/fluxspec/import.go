package fluxspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
)

// SyncOf is the sync that is made into the same Kustomization and source, and what of these has no
// place in it, each with its field. The source is the GitRepository or OCIRepository that
// the Kustomization fetches from; it is an error if it is another kind, or was never fetched
// where it follows what moves.
func SyncOf(k *kustomizev1.Kustomization, source client.Object) (v1alpha1.Sync, []string, error) {
	sync := v1alpha1.Sync{SyncOptions: v1alpha1.SyncOptions{Interval: &k.Spec.Interval, Timeout: k.Spec.Timeout, Prune: &k.Spec.Prune, Wait: &k.Spec.Wait}}
	for _, e := range k.Spec.HealthCheckExprs {
		sync.HealthCheckExprs = append(sync.HealthCheckExprs, v1alpha1.HealthCheckExpr{
			APIVersion: e.APIVersion, Kind: e.Kind, Current: e.Current, InProgress: e.InProgress, Failed: e.Failed,
		})
	}
	from, notes, err := sourceOf(source)
	if err != nil {
		return sync, nil, err
	}
	sync.Source = from
	sync.Package = &v1alpha1.Package{Kustomize: &v1alpha1.Kustomize{Path: k.Spec.Path, Substitute: substitutes(k)}}
	if sync.Package.Kustomize.Spec, err = rest(&k.Spec, kustomization.places); err != nil {
		return sync, nil, err
	}
	return sync, slices.Concat(placeless(k), notes), nil
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

// placeless are the fields of a Kustomization that say what a sync does not.
func placeless(k *kustomizev1.Kustomization) []string {
	var notes []string
	if k.Spec.Suspend {
		notes = append(notes, "spec.suspend: it is suspended; the module applies it to each cluster that it selects")
	}
	if k.Spec.KubeConfig != nil {
		notes = append(notes, "spec.kubeConfig: it is applied to another cluster; register that one, and use kind BootstrapModule if the Flux of the hub is to go on applying it")
	}
	if k.Spec.DeletionPolicy != "" && k.Spec.DeletionPolicy != kustomizev1.DeletionPolicyMirrorPrune {
		notes = append(notes, "spec.deletionPolicy: "+k.Spec.DeletionPolicy+" is not taken over; spec.deletionPolicy of the module says Delete or Orphan")
	}
	if ns := k.Spec.SourceRef.Namespace; ns != "" && ns != k.Namespace {
		notes = append(notes, fmt.Sprintf("spec.sourceRef.namespace: the source is in namespace %s; the Secrets that it needs must be in that of the module on each cluster", ns))
	}
	return notes
}

// sourceOf is a source of Flux at the exact version that was fetched.
func sourceOf(of client.Object) (*v1alpha1.Source, []string, error) {
	switch s := of.(type) {
	case *sourcev1.GitRepository:
		ref := s.Spec.Reference
		if ref == nil {
			ref = &sourcev1.GitRepositoryRef{Branch: "master"} // which is Flux's default
		}
		version, notes, err := gitVersion(ref, s.Status.Artifact)
		if err != nil {
			return nil, nil, err
		}
		raw, err := rest(&s.Spec, gitRepository.places)
		return &v1alpha1.Source{Git: &v1alpha1.GitSource{URL: s.Spec.URL, Version: version, SecretRef: referenceOf(s.Spec.SecretRef), Spec: raw}}, notes, err
	case *sourcev1.OCIRepository:
		ref := s.Spec.Reference
		if ref == nil {
			ref = &sourcev1.OCIRepositoryRef{Tag: "latest"} // which is Flux's default
		}
		version, notes, err := ociVersion(ref, s.Status.Artifact)
		if err != nil {
			return nil, nil, err
		}
		raw, err := rest(&s.Spec, ociRepository.places)
		return &v1alpha1.Source{OCI: &v1alpha1.OCISource{URL: s.Spec.URL, Version: version, SecretRef: referenceOf(s.Spec.SecretRef), Spec: raw}}, notes, err
	default:
		return nil, nil, fmt.Errorf("spec.sourceRef: it fetches from a %T, and modules from a GitRepository or an OCIRepository", of)
	}
}

// gitVersion is the tag or the commit of a reference. What moves is the commit that was fetched last.
func gitVersion(ref *sourcev1.GitRepositoryRef, fetched *meta.Artifact) (v1alpha1.GitVersion, []string, error) {
	switch {
	case ref.Commit != "":
		return v1alpha1.GitVersion{Revision: ref.Commit}, nil, nil
	case ref.Tag != "" && ref.SemVer == "" && ref.Name == "":
		return v1alpha1.GitVersion{Tag: ref.Tag}, nil, nil
	}
	name, digest, err := split(fetched)
	if err != nil {
		return v1alpha1.GitVersion{}, nil, err
	}
	if ref.SemVer != "" && ref.Name == "" {
		return v1alpha1.GitVersion{Tag: name}, []string{moves("ref.semver "+ref.SemVer, "the tag "+name)}, nil
	}
	_, commit, _ := strings.Cut(digest, ":")
	return v1alpha1.GitVersion{Revision: commit}, []string{moves("ref", "the commit "+commit+" of "+name)}, nil
}

func ociVersion(ref *sourcev1.OCIRepositoryRef, fetched *meta.Artifact) (v1alpha1.OCIVersion, []string, error) {
	switch {
	case ref.Digest != "":
		return v1alpha1.OCIVersion{Digest: ref.Digest}, nil, nil
	case ref.SemVer == "":
		return v1alpha1.OCIVersion{Tag: ref.Tag}, nil, nil
	}
	name, _, err := split(fetched)
	if err != nil {
		return v1alpha1.OCIVersion{}, nil, err
	}
	return v1alpha1.OCIVersion{Tag: name}, []string{moves("ref.semver "+ref.SemVer, "the tag "+name)}, nil
}

func moves(what, to string) string {
	return fmt.Sprintf("source %s: it followed what moves; the module is at %s, and rolls out another when you change that", what, to)
}

// split takes the revision of an artifact apart: "v1.2.3@sha1:abc".
func split(fetched *meta.Artifact) (name, digest string, err error) {
	if fetched != nil {
		name, digest, _ = strings.Cut(fetched.Revision, "@")
	}
	if name == "" || digest == "" {
		return "", "", fmt.Errorf("status.artifact: the source was not fetched yet, so it is not known at which version it is")
	}
	return name, digest, nil
}

func referenceOf(ref *meta.LocalObjectReference) *v1alpha1.LocalReference {
	if ref == nil {
		return nil
	}
	return &v1alpha1.LocalReference{Name: ref.Name}
}

// rest is what a spec of Flux says besides the fields that have a place of their own, nil if it is nothing.
func rest(spec any, places map[string]string) (*runtime.RawExtension, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode a spec of Flux: %w", err)
	}
	said := map[string]any{}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, fmt.Errorf("encode a spec of Flux: %w", err)
	}
	for field := range places {
		drop(said, field)
	}
	if len(said) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	if data, err = json.Marshal(said); err != nil {
		return nil, fmt.Errorf("encode a spec of Flux: %w", err)
	}
	return &runtime.RawExtension{Raw: data}, nil
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
