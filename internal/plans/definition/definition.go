package definition

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Change is a CustomResourceDefinition as it is and as it is wanted.
type Change struct {
	Live, Wanted *unstructured.Unstructured
	// Owns reports whether the plan that makes the change also applies an object of the kind.
	Owns func(*unstructured.Unstructured) bool
	// Namespace is the only one whose objects are named; empty names all.
	Namespace string
}

// IsNarrowed reports whether the change may refuse objects that exist: a version goes, or has
// another schema.
func IsNarrowed(live, wanted *unstructured.Unstructured) bool {
	next := schemasOf(wanted)
	for name, s := range schemasOf(live) {
		if other, stays := next[name]; !stays || !reflect.DeepEqual(s, other) {
			return true
		}
		delete(next, name)
	}
	return len(next) > 0
}

// schemasOf are the schemas of a definition, by version.
func schemasOf(u *unstructured.Unstructured) map[string]any {
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	all := map[string]any{}
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok {
			name, _ := v["name"].(string)
			all[name] = v["schema"]
		}
	}
	return all
}

// Result is what became of a check.
type Result struct {
	// Breaks is what the change would break and what to do, empty if that is nothing.
	Breaks string
	// Unchecked is what could not be checked, and why; empty if everything was.
	Unchecked string
	// Forbidden is the answer of the API server, if Unchecked is for the lack of a permission.
	Forbidden error
}

// The bounds of a check.
const (
	pageSize  = 250
	mostPages = 40
	patience  = 30 * time.Second
	// mostNamed is how many objects a message names.
	mostNamed = 3
)

// Check says which objects would be invalid after the change.
func (c Change) Check(ctx context.Context, reader client.Reader) (Result, error) {
	var live, wanted apiextensionsv1.CustomResourceDefinition
	convert := runtime.DefaultUnstructuredConverter
	if convert.FromUnstructured(c.Live.Object, &live) != nil || convert.FromUnstructured(c.Wanted.Object, &wanted) != nil {
		return Result{}, nil // the API server says what is wrong with it
	}
	for _, stored := range live.Status.StoredVersions {
		if versionOf(&wanted, stored) == nil {
			return Result{Breaks: fmt.Sprintf("version %s would be removed, in which objects may be stored (status.storedVersions); keep it with served: false, or write all objects again and remove it from status.storedVersions first", stored)}, nil
		}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := tally{Change: c}
	for i := range wanted.Spec.Versions {
		v := &wanted.Spec.Versions[i]
		if !v.Served {
			continue
		}
		switch err := t.checkVersion(limited, reader, &live, &wanted, v); {
		case err != nil && limited.Err() != nil && ctx.Err() == nil:
			t.more = fmt.Sprintf("not all objects could be checked in %s", patience)
			return t.result(), nil
		case err != nil:
			return t.unread(&wanted, err)
		}
	}
	return t.result(), nil
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

// tally counts objects that would be invalid.
type tally struct {
	Change

	invalid int
	named   []string
	// more is why not all objects were checked.
	more string
}

// checkVersion judges all objects by the schema that a version would have.
func (t *tally) checkVersion(ctx context.Context, reader client.Reader, live, wanted *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) error {
	from := versionOf(live, v.Name)
	if from == nil || !from.Served { // without a conversion, an object is the same in all versions
		i := slices.IndexFunc(live.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
		if c := wanted.Spec.Conversion; i < 0 || c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			return nil
		}
		from = &live.Spec.Versions[i]
	} else if reflect.DeepEqual(from.Schema, v.Schema) {
		return nil
	}
	next, err := newJudge(v)
	if err != nil {
		return nil //nolint:nilerr // the API server says what is wrong with it
	}
	now, err := newJudge(from)
	if err != nil {
		return nil //nolint:nilerr // then it cannot tell what is invalid already
	}
	gvk := schema.GroupVersionKind{Group: live.Spec.Group, Version: from.Name, Kind: live.Spec.Names.Kind}
	return t.eachObject(ctx, reader, gvk, func(u *unstructured.Unstructured) {
		if t.Owns(u) {
			return
		}
		before := u.DeepCopy()
		u.SetAPIVersion(wanted.Spec.Group + "/" + v.Name)
		problems := next.problems(ctx, u.Object)
		if len(problems) > 0 {
			known := now.problems(ctx, before.Object)
			problems = slices.DeleteFunc(problems, func(p string) bool { return slices.Contains(known, p) })
		}
		if len(problems) > 0 {
			t.add(u, problems[0])
		}
	})
}

// eachObject visits the objects of a kind, page by page.
func (t *tally) eachObject(ctx context.Context, reader client.Reader, gvk schema.GroupVersionKind, visit func(*unstructured.Unstructured)) error {
	next := ""
	for range mostPages {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := reader.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for i := range page.Items {
			if ctx.Err() != nil {
				return ctx.Err() //nolint:wrapcheck // it is the caller's
			}
			visit(&page.Items[i])
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
	t.more = fmt.Sprintf("only the first %d objects of kind %s were checked", pageSize*mostPages, gvk.Kind)
	return nil
}

func (t *tally) add(u *unstructured.Unstructured, problem string) {
	t.invalid++
	if len(t.named) >= mostNamed {
		return
	}
	name := object.RefOf(u).String()
	switch of := u.GetNamespace(); {
	case t.Namespace != "" && of != t.Namespace:
		name = "an object outside namespace " + t.Namespace
	case of != "":
		name += " in namespace " + of
	}
	t.named = append(t.named, name+": "+problem)
}

func (t *tally) result() Result {
	if t.invalid == 0 {
		return Result{Unchecked: t.more}
	}
	named := strings.Join(t.named, "; ")
	if rest := t.invalid - len(t.named); rest > 0 {
		named += fmt.Sprintf("; and %d more", rest)
	}
	return Result{Breaks: message.Sentence(fmt.Sprintf("objects that exist would be invalid (%d): %s", t.invalid, named)) +
		"; change them first, or accept that and apply the CustomResourceDefinition by hand"}
}

// unread is the result if objects cannot be read: those of a kind that is not served yet do not
// exist.
func (t *tally) unread(wanted *apiextensionsv1.CustomResourceDefinition, err error) (Result, error) {
	switch {
	case apierrors.IsForbidden(err):
		return Result{Unchecked: fmt.Sprintf("no permission to list %s.%s", wanted.Spec.Names.Plural, wanted.Spec.Group), Forbidden: err}, nil
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return Result{}, nil
	default:
		return Result{}, err
	}
}
