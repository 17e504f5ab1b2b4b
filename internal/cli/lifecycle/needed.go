package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/dependency"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
)

// load reads a package, and those that it needs, whose versions are pinned in it.
func (o *operation) load(ctx context.Context, name string) (*packages.Package, []*packages.Package, error) {
	p, err := o.from.Load(ctx, o.env, name)
	if err != nil {
		return nil, nil, err
	}
	if err := o.pinAsInstalled(ctx, p); err != nil {
		return nil, nil, err
	}
	needed, err := dependency.Resolve(ctx, p, o.loadNeeded)
	return p, needed, err
}

// pinAsInstalled gives tasks that name no version the one that they got when the package
// was installed: a later one in the repository does not make it another package.
func (o *operation) pinAsInstalled(ctx context.Context, p *packages.Package) error {
	isUnpinned := func(t v1beta1.Task) bool { return t.Kind == v1beta1.KudoOperatorTask && t.Spec.OperatorVersion == "" }
	if o.dryRun.IsClient() || o.client == nil || !slices.ContainsFunc(p.Operator.Tasks, isUnpinned) {
		return nil
	}
	live := &v1beta1.OperatorVersion{}
	err := o.client.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: p.VersionName()}, live)
	if err != nil {
		return client.IgnoreNotFound(err) //nolint:wrapcheck // it names the object
	}
	for i := range p.Operator.Tasks {
		t := &p.Operator.Tasks[i]
		at := slices.IndexFunc(live.Spec.Tasks, func(o v1beta1.Task) bool {
			return o.Name == t.Name && o.Kind == t.Kind && o.Spec.Package == t.Spec.Package
		})
		if isUnpinned(*t) && at >= 0 {
			t.Spec.AppVersion, t.Spec.OperatorVersion = live.Spec.Tasks[at].Spec.AppVersion, live.Spec.Tasks[at].Spec.OperatorVersion
		}
	}
	return nil
}

// loadNeeded reads a package that another needs. One that cannot be read may be installed.
func (o *operation) loadNeeded(ctx context.Context, r dependency.Reference) (*packages.Package, error) {
	from := o.from.Origin(o.env)
	from.AppVersion, from.OperatorVersion = r.AppVersion, r.OperatorVersion
	p, err := from.Load(ctx, r.Package)
	if err == nil || o.dryRun.IsClient() {
		return p, err
	}
	key := client.ObjectKey{Namespace: o.namespace, Name: r.VersionName()}
	if len(validation.NameIsDNSSubdomain(key.Name, false)) > 0 {
		return nil, err // it is named by a path or a URL, as no object is
	}
	switch failed := o.client.Get(ctx, key, &v1beta1.OperatorVersion{}); {
	case failed == nil:
		return nil, nil //nolint:nilnil // it is installed
	case apierrors.IsNotFound(failed):
		return nil, fmt.Errorf("%w; or install it first, so that operatorversion/%s exists in namespace %s", err, key.Name, key.Namespace)
	default:
		return nil, errors.Join(err, failed)
	}
}

// ensureNeeded creates the Operators and OperatorVersions that a package needs, after it
// has seen that none exists with other content.
func (o *operation) ensureNeeded(ctx context.Context, r *results, needed []*packages.Package) error {
	versions := make([]*v1beta1.OperatorVersion, len(needed))
	for i, p := range needed {
		var err error
		if versions[i], err = p.VersionObject(); err != nil {
			return err
		}
		versions[i].Namespace = o.namespace
		if o.dryRun.IsClient() {
			continue
		}
		if err := o.checkVersion(ctx, versions[i]); err != nil {
			return err
		}
	}
	for i, p := range needed {
		if err := o.ensurePackage(ctx, r, p, o.operatorOf(p), versions[i]); err != nil {
			return err
		}
	}
	return nil
}

// namespaceOf is the namespace that a package wants: what its template namespaceManifest
// makes, or one without labels. The name is the one that the user gives.
func namespaceOf(p *packages.Package, version *v1beta1.OperatorVersion, i *v1beta1.Instance) (client.Object, error) {
	manifest := p.Operator.NamespaceManifest
	if manifest == "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace}}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		return namespace, nil
	}
	text, ok := p.Templates[manifest]
	if !ok {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s not found; fix the name, or add the template", manifest)
	}
	values, _ := choice.Values(&version.Spec, choice.WithTokens(&i.Spec), nil) // which were checked before
	objects, err := render.Objects(manifest, text, render.Context{
		Name: i.Name, Namespace: i.Namespace, OperatorName: p.Operator.Name,
		OperatorVersion: version.Spec.Version, AppVersion: version.Spec.AppVersion, Params: values,
	}, i.Namespace)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || object.RefOf(objects[0]).GroupKind() != object.NamespaceKind {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s must be one Namespace", manifest)
	}
	objects[0].SetName(i.Namespace)
	return objects[0], nil
}

// sameText is true of two values with the same JSON.
func sameText(a, b any) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}
