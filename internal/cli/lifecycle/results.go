package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// What became of an object.
const (
	created   = "created"
	unchanged = "unchanged"
	changed   = "changed"
	kept      = "kept as it is"
)

// results are what became of objects, in order. Text is written as it happens, other
// forms at the end.
type results struct {
	out    io.Writer
	output string
	// suffix says that it was a dry run.
	suffix string
	// kudo is true if text is as KUDO writes it.
	kudo bool
	all  []*unstructured.Unstructured
	// deleted are the full names of objects that the plan deletes.
	deleted map[string]bool
	// warned are the objects of which it was said that no API server accepts them.
	warned map[object.Ref]bool
}

func (o *operation) results() *results {
	return &results{out: o.out, output: o.output, suffix: o.dryRun.Note(), kudo: o.env.KUDO, deleted: map[string]bool{}, warned: map[object.Ref]bool{}}
}

// add records what became of an object.
func (r *results) add(obj client.Object, did string) error {
	u, err := kube.Manifest(obj)
	if err != nil {
		return err
	}
	u.SetManagedFields(nil)
	r.all = append(r.all, u)
	switch {
	case r.output == "" && r.kudo:
		_, _ = fmt.Fprintln(r.out, kudoResult(u, did))
	case r.output == "":
		_, _ = fmt.Fprintf(r.out, "%s %s%s\n", shortName(u), did, r.suffix)
	case r.output == command.OutputName:
		_, _ = fmt.Fprintln(r.out, fullName(u))
	}
	return nil
}

// kudoResult is what became of an object, as KUDO says it.
func kudoResult(u *unstructured.Unstructured, did string) string {
	if did == kept {
		did = unchanged
	}
	if did, _, _ = strings.Cut(did, ";"); did == changed {
		did = "updated"
	}
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return strings.ToLower(u.GetKind()) + " " + name + " " + did
}

// end writes what was recorded, in the forms that are written at the end.
func (r *results) end() error {
	switch r.output {
	case command.OutputYAML:
		for _, u := range r.all {
			raw, err := yaml.Marshal(u.Object)
			if err != nil {
				return fmt.Errorf("write YAML: %w", err)
			}
			_, _ = fmt.Fprintf(display.Raw(r.out), "---\n%s", raw)
		}
	case "", command.OutputName:
	default:
		items := make([]any, len(r.all))
		for i, u := range r.all {
			items[i] = u.Object
		}
		return command.Show(r.out, r.output, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil)
	}
	return nil
}

// shortName is how messages name an object.
func shortName(obj client.Object) string {
	return strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind) + "/" + obj.GetName()
}

// fullName is how kubectl names an object.
func fullName(u *unstructured.Unstructured) string {
	kind := strings.ToLower(u.GetKind())
	if group := u.GroupVersionKind().Group; group != "" {
		kind += "." + group
	}
	return kind + "/" + u.GetName()
}

// addRendered records what would become of an object that a plan applies or deletes. The
// forms for machines have only those that it applies.
func (r *results) addRendered(u *unstructured.Unstructured, would string, applies bool) {
	if applies {
		r.all = append(r.all, u)
	} else {
		r.deleted[fullName(u)] = true
	}
	switch {
	case r.output == "":
		_, _ = fmt.Fprintf(r.out, "%s %s%s\n", shortName(u), would, r.suffix)
	case r.output == command.OutputName && applies:
		_, _ = fmt.Fprintln(r.out, fullName(u))
	}
}

// isDeleted is true of an object that the plan deletes.
func (r *results) isDeleted(u *unstructured.Unstructured) bool { return r.deleted[fullName(u)] }

// showPlan records, in a dry run, what a plan would apply and delete, and lets the API
// server check it.
func (o *operation) showPlan(ctx context.Context, r *results, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if !o.dryRun.On() || plan == "" {
		return nil
	}
	t := o.trial()
	previews, err := t.render(i, version, plan, nil)
	if err != nil {
		return err
	}
	defined := definedBy(previews)
	var refusals []error
	for _, p := range previews {
		at := fmt.Sprintf("plan %s at %s/%s", plan, p.Path[0], p.Path[1])
		for _, u := range p.Objects {
			if p.Deletes {
				r.addRendered(u, "deleted by "+at, false)
				continue
			}
			r.addRendered(u, "applied by "+at, true)
			o.warnIfRetired(r, u)
			if o.tried {
				continue
			}
			if err := t.check(ctx, i, u, defined); err != nil {
				refusals = append(refusals, fmt.Errorf("%s: %s: %w", at, shortName(u), err))
			}
		}
	}
	return errors.Join(refusals...)
}

// warnIfRetired says, once, that no API server would accept an object, where none is asked.
func (o *operation) warnIfRetired(r *results, u *unstructured.Unstructured) {
	gvk := u.GroupVersionKind()
	if !o.dryRun.IsClient() || r.warned[object.RefOf(u)] || o.isServed(gvk) {
		return
	}
	r.warned[object.RefOf(u)] = true
	advice := object.RetiredAdvice(gvk)
	if to, _ := object.Successor(gvk); !to.Empty() {
		advice += ", or have it changed with: spillway package modernize DIR"
	}
	_, _ = fmt.Fprintf(o.env.Err, "warning: %s: %s\n", shortName(u), advice)
}

// isServed is false of a version of one of Kubernetes' own kinds that the cluster does not
// serve any more, or, if no cluster is known, that Kubernetes of the wanted version does not.
func (o *operation) isServed(gvk schema.GroupVersionKind) bool {
	if o.client == nil {
		return object.IsServedIn(gvk, o.kubeVersion.Minor)
	}
	_, isRetired := object.Successor(gvk)
	_, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	return !isRetired || !apimeta.IsNoMatchError(err)
}
