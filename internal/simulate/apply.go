package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
)

// fieldOwner is the user that applies the manifests.
const fieldOwner = "user"

// apply applies objects as one does who means to have it his way, as Flux, Argo CD and
// kubectl apply --force-conflicts do. What others would refuse for that is a risk.
func (s *simulation) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, obj := range definitionsFirst(objects) {
		if err := s.applyOne(ctx, obj.DeepCopy()); err != nil {
			return &RefusedError{Object: obj, Err: err}
		}
	}
	return nil
}

// definitionsFirst puts CustomResourceDefinitions before what may be of their kinds.
func definitionsFirst(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	isDefinition := func(u *unstructured.Unstructured) bool {
		return apiserver.IsDefinition(u.GroupVersionKind().GroupKind())
	}
	rest := slices.DeleteFunc(slices.Clone(objects), isDefinition)
	return append(slices.DeleteFunc(slices.Clone(objects), func(u *unstructured.Unstructured) bool { return !isDefinition(u) }), rest...)
}

func (s *simulation) applyOne(ctx context.Context, u *unstructured.Unstructured) error {
	kind := u.GroupVersionKind()
	mapping, err := s.Store.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err //nolint:wrapcheck // it is said as the API server says it
	}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		u.SetNamespace(cmp.Or(u.GetNamespace(), s.options.Namespace))
	}
	if s.options.Installed == nil {
		bare(u)
	}
	manifest, owner := client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldOwner)
	err = s.Store.Apply(ctx, manifest, owner)
	conflicts, ok := conflictsIn(err)
	if !ok {
		return err
	}
	s.noteConflicts(u, conflicts)
	return s.Store.Apply(ctx, manifest, owner, client.ForceOwnership)
}

// conflictsIn are the fields of another field manager, if that is why something was not
// applied.
func conflictsIn(err error) (conflicts []metav1.StatusCause, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil, false
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, c)
		}
	}
	return conflicts, len(conflicts) > 0
}

// noteConflicts notes the fields that Spillway, or an autoscaler, has set since. Other
// field managers are taken for the user that applies the manifests: nothing here says
// who that is.
func (s *simulation) noteConflicts(u *unstructured.Unstructured, conflicts []metav1.StatusCause) {
	byOwner := map[string][]string{}
	for _, c := range conflicts {
		_, owner, _ := strings.Cut(c.Message, `"`)
		owner, more, _ := strings.Cut(owner, `"`)
		if strings.HasPrefix(owner, kube.FieldOwner) || strings.Contains(more, "subresource") {
			byOwner[owner] = append(byOwner[owner], strings.TrimPrefix(c.Field, "."))
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		s.conflicts = append(s.conflicts, Risk{
			Object: strings.ToLower(u.GetKind()) + "/" + u.GetName(), Namespace: u.GetNamespace(),
			Sentence: fmt.Sprintf("the manifest sets %s, which %s has set: kubectl apply --server-side refuses that", strings.Join(byOwner[owner], ", "), owner),
			Action:   "take it out of the manifest, or apply that with --force-conflicts, as was simulated",
		})
	}
}

// bare takes away what only an API server writes. In a manifest it comes from an object
// that was read from a cluster; here it would be that of another object.
func bare(u *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
}
