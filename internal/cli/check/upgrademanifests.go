package check

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/source"
)

// upgradeManifests lints what is in the cluster by the rules of this version: an error may
// be one that the version before did not know.
func (i *installation) upgradeManifests(ctx context.Context, c client.Client, now time.Time) []finding {
	const what = "the manifests of users"
	text, objects, err := i.manifests(ctx, c)
	if err != nil {
		return []finding{unread(what, err)}
	}
	if objects == 0 {
		return []finding{{OK: true, What: "there are no manifests that lint could find an error in"}}
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		return []finding{unread(what, err)}
	}
	documents, unreadable := source.ReadTree(bytes.NewReader(text), source.Options{}, source.Stdin)
	found, err := lint.Lint(documents, unreadable, manifest.Options{Scheme: scheme, Namespace: "default", Now: now})
	if err != nil {
		return []finding{unread(what, err)}
	}
	var findings []finding
	for n := range found {
		if f := &found[n]; f.Level == report.Error {
			findings = append(findings, finding{What: fmt.Sprintf("%s: %s (%s)", f.Object, f.Message, f.Code), Action: f.Action, problem: f.Code})
		}
	}
	if len(findings) == 0 {
		findings = []finding{{OK: true, What: fmt.Sprintf("lint finds no error in %d objects", objects)}}
	}
	return findings
}

// manifests are the workloads that the manager watches, and the objects of its kinds, as
// their users have written them.
func (i *installation) manifests(ctx context.Context, c client.Client) (text []byte, objects int, err error) {
	kinds, err := i.kinds()
	if err != nil {
		return nil, 0, err
	}
	namespaces := kube.OrAll(i.args.Namespaces())
	for _, kind := range kinds {
		for _, namespace := range namespaces {
			more, n, err := listed(ctx, c, kind, namespace)
			if err != nil {
				return nil, 0, err
			}
			text, objects = append(text, more...), objects+n
		}
	}
	return text, objects, nil
}

// kinds are those of which users write objects for the rings.
func (i *installation) kinds() ([]schema.GroupVersionKind, error) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	kinds := []schema.GroupVersionKind{apps.WithKind("Deployment"), apps.WithKind("StatefulSet"), apps.WithKind("DaemonSet")}
	own, err := manifests.KindsOf(i.args.Rings())
	if err != nil {
		return nil, fmt.Errorf("kinds: %w", err)
	}
	for _, crd := range own {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions := slices.Sorted(func(yield func(string) bool) {
			for version := range fieldsOf(crd) {
				if !yield(version) {
					return
				}
			}
		})
		kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: versions[len(versions)-1], Kind: kind})
	}
	return kinds, nil
}

// page is how many objects are read at a time.
const page = 500

func listed(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace string) (text []byte, objects int, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	for {
		err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(list.GetContinue()))
		if apimeta.IsNoMatchError(err) {
			return text, objects, nil // the upgrade adds the kind
		}
		if err != nil {
			return nil, 0, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for n := range list.Items {
			obj := &list.Items[n]
			delete(obj.Object, "status")
			obj.SetManagedFields(nil)
			raw, err := yaml.Marshal(obj.Object)
			if err != nil {
				return nil, 0, fmt.Errorf("write %s %s: %w", kind.Kind, obj.GetName(), err)
			}
			text, objects = append(append(text, "---\n"...), raw...), objects+1
		}
		if list.GetContinue() == "" {
			return text, objects, nil
		}
	}
}
