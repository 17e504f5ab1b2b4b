package lifecycle

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/source"
)

// trial renders plans, and asks the API server by dry run what would become of objects.
type trial struct {
	// Client is nil where the API server must not be asked.
	Client client.Client
	Now    func() time.Time
}

// render renders a plan as it would run for an Instance. live are the objects that exist.
func (t trial) render(i *v1beta1.Instance, version *choice.Version, plan string, live map[object.Ref]*unstructured.Unstructured) ([]task.Preview, error) {
	values, problems := choice.Values(version.Spec, choice.WithTokens(&i.Spec), i.Status.ImmutableParameters)
	if len(problems) > 0 {
		return nil, fmt.Errorf("instance/%s: %s", i.Name, choice.Sentences(problems))
	}
	run := task.Run{
		Snapshot:  &task.Snapshot{Instance: i, Objects: live},
		Execution: &v1beta1.Execution{Plan: plan, Spec: i.Spec, Advances: true},
		Version:   version, Values: values,
	}
	previews, err := run.Preview(t.scope)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", plan, err)
	}
	return previews, nil
}

// scope asks the cluster where objects of a kind live, if there is one. A kind that is not
// known may be defined by the package; most are namespaced.
func (t trial) scope(gvk schema.GroupVersionKind) object.Scope {
	isNamespaced := source.IsNamespaced(gvk.GroupKind())
	if t.Client != nil {
		if mapping, err := t.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			isNamespaced = mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
		}
	}
	if isNamespaced {
		return object.Namespaced
	}
	return object.ClusterScoped
}

// check lets the API server check an object, where it is asked and can know the kind.
func (t trial) check(ctx context.Context, i *v1beta1.Instance, u *unstructured.Unstructured, defined map[schema.GroupKind]bool) error {
	if t.Client == nil || defined[u.GroupVersionKind().GroupKind()] {
		return nil
	}
	return t.try(ctx, i, u.DeepCopy())
}

// definedBy are the kinds that CustomResourceDefinitions of the plan define: the API server
// does not know them yet.
func definedBy(previews []task.Preview) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for _, p := range previews {
		for _, u := range p.Objects {
			if u.GroupVersionKind().GroupKind() != object.CRDKind {
				continue
			}
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return defined
}

// retiredError is that a kind is not served in this version, and never will be again.
type retiredError string

// Error implements error.
func (e retiredError) Error() string { return string(e) }

// try lets the API server check an object as the manager would apply it, and changes it to
// what it would be.
func (t trial) try(ctx context.Context, i *v1beta1.Instance, u *unstructured.Unstructured) error {
	_, err := write.Known(u, func() error {
		return t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(write.FieldOwner(i.Name)), client.ForceOwnership, client.DryRunAll)
	})
	if advice := object.RetiredAdvice(u.GroupVersionKind()); apimeta.IsNoMatchError(err) && advice != "" {
		return retiredError(advice)
	}
	if apimeta.IsNoMatchError(err) {
		gvk := u.GroupVersionKind()
		return fmt.Errorf("the API server does not know kind %s of %s; install what defines it", gvk.Kind, gvk.GroupVersion())
	}
	return err
}
