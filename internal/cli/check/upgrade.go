package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/source"
)

// checkUpgrades says for each manager what this version would change.
func (c *checking) checkUpgrades(ctx context.Context, reader client.Client, found []installation) ([]finding, error) {
	if len(found) == 0 {
		return nil, errors.New("--upgrade: no manager is installed; spillway check --pre says what an installation needs")
	}
	var findings []finding
	for n := range found {
		i := &found[n]
		of := []finding{i.versions()}
		of = append(of, i.upgradeKinds(ctx, reader)...)
		of = append(of, i.upgradePermissions(ctx, reader)...)
		of = append(of, i.upgradeFlags(c.managerFlags())...)
		of = append(of, i.upgradeManifests(ctx, reader, c.now())...)
		for n := range of {
			of[n].Group = i.group()
		}
		findings = append(findings, of...)
	}
	return findings, nil
}

func (i *installation) versions() finding {
	return finding{OK: true, What: fmt.Sprintf("image %s is installed; this is version %s", i.images(), command.CurrentVersion())}
}

// upgradeKinds compares the kinds field by field.
func (i *installation) upgradeKinds(ctx context.Context, c client.Client) []finding {
	kinds, err := manifests.KindsOf(i.args.Rings())
	if err != nil {
		return []finding{unread("kinds", err)}
	}
	var findings []finding
	for _, crd := range kinds {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(crd.GroupVersionKind())
		switch err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); {
		case apierrors.IsNotFound(err):
			findings = append(findings, finding{OK: true, What: "kind " + crd.GetName() + " is added"})
		case err != nil:
			findings = append(findings, unread("kind "+crd.GetName(), err))
		default:
			findings = append(findings, upgradeKind(ctx, c, live, crd)...)
		}
	}
	if len(findings) == 0 && len(kinds) > 0 {
		findings = []finding{{OK: true, What: "no kind changes"}}
	}
	return findings
}

// upgradeKind is what would change of one kind. Versions and fields that are gone lose what
// objects have there.
func upgradeKind(ctx context.Context, c client.Client, live, next *unstructured.Unstructured) (findings []finding) {
	what := "kind " + next.GetName()
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	before, after := fieldsOf(live), fieldsOf(next)
	for _, version := range stored {
		if after[version] == nil {
			findings = append(findings, finding{
				What:   fmt.Sprintf("%s no longer has version %s, in which objects may be stored", what, version),
				Action: "write each of them once in another version, and remove it from status.storedVersions",
			})
		}
	}
	for _, version := range slices.Sorted(maps.Keys(after)) {
		if before[version] == nil {
			findings = append(findings, finding{OK: true, What: fmt.Sprintf("%s gets version %s", what, version)})
			continue
		}
		if gone := sets.List(before[version].Difference(after[version])); len(gone) > 0 {
			findings = append(findings, finding{
				Advice: true, What: fmt.Sprintf("%s %s loses %s", what, version, counted(gone, "field")),
				Action: "what objects have there is dropped when they are next written",
			})
		}
		if more := sets.List(after[version].Difference(before[version])); len(more) > 0 {
			findings = append(findings, finding{OK: true, What: fmt.Sprintf("%s %s gets %s", what, version, counted(more, "field"))})
		}
	}
	if len(findings) == 0 && changes(ctx, c, live, next) {
		findings = []finding{{OK: true, What: what + " keeps its fields; their validation or descriptions change"}}
	}
	return findings
}

// changes is true if to apply a kind would change it. Who may not, sees no more.
func changes(ctx context.Context, c client.Client, live, next *unstructured.Unstructured) bool {
	next = next.DeepCopy()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(next), client.FieldOwner(kube.FieldOwner), client.ForceOwnership, client.DryRunAll)
	return err == nil && next.GetGeneration() != live.GetGeneration()
}

// fieldsOf are the fields of each served version of a kind, by their paths.
func fieldsOf(crd *unstructured.Unstructured) map[string]sets.Set[string] {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	all := map[string]sets.Set[string]{}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(version, "name")
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		all[name] = sets.New[string]()
		addFields(all[name], "", schema)
	}
	return all
}

// addFields adds the fields below a schema. A list and a map are as what they are of.
func addFields(to sets.Set[string], path string, schema map[string]any) {
	for _, of := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[of].(map[string]any); ok {
			addFields(to, path, inner)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		field := strings.TrimPrefix(path+"."+name, ".")
		to.Insert(field)
		if inner, ok := property.(map[string]any); ok {
			addFields(to, field, inner)
		}
	}
}

// chosenPermissions are those of --wave-cleanup, --reloader-annotations and --reloader-cronjobs, which stay as they are.
var chosenPermissions = []string{
	"patch configmaps", "patch secrets", "list rollouts.argoproj.io", "watch rollouts.argoproj.io", "patch rollouts.argoproj.io",
	"list customresourcedefinitions.apiextensions.k8s.io named rollouts.argoproj.io", "watch customresourcedefinitions.apiextensions.k8s.io named rollouts.argoproj.io",
	"list cronjobs.batch", "watch cronjobs.batch", "patch cronjobs.batch", "update cronjobs/status.batch", "create jobs.batch", "patch jobs.batch",
}

// upgradePermissions compares what the manager may do with what this version needs.
func (i *installation) upgradePermissions(ctx context.Context, c client.Client) []finding {
	rules, err := manifests.Rules(i.args.Rings(), i.args.Namespaces()...)
	if err != nil {
		return []finding{unread("permissions", err)}
	}
	next := granted(rules)
	before, err := i.permissions(ctx, c)
	if apierrors.IsNotFound(err) {
		return []finding{{Advice: true, What: "the permissions of the manager are not where spillway install puts them: " + err.Error()}}
	}
	if err != nil {
		return []finding{unread("permissions", err)}
	}
	next = next.Union(before.Intersection(sets.New(chosenPermissions...)))
	var findings []finding
	if more := sets.List(next.Difference(before)); len(more) > 0 {
		findings = append(findings, finding{Advice: true, What: "the manager gets " + counted(more, "permission"), Action: "docs/security.md says what each is for"})
	}
	if fewer := sets.List(before.Difference(next)); len(fewer) > 0 {
		findings = append(findings, finding{OK: true, What: "the manager loses " + counted(fewer, "permission")})
	}
	if len(findings) == 0 {
		findings = []finding{{OK: true, What: "no permission of the manager changes"}}
	}
	return findings
}

// permissions are those of the manager now: of its ClusterRole, or of its Role in the first
// namespace that it watches, which are alike.
func (i *installation) permissions(ctx context.Context, c client.Client) (sets.Set[string], error) {
	role := i.deployment.Spec.Template.Spec.ServiceAccountName // its roles have the name of its account
	if watched := i.args.Namespaces(); len(watched) > 0 {
		of := &rbacv1.Role{}
		err := c.Get(ctx, client.ObjectKey{Namespace: watched[0], Name: role}, of)
		return granted(of.Rules), err
	}
	of := &rbacv1.ClusterRole{}
	err := c.Get(ctx, client.ObjectKey{Name: role}, of)
	return granted(of.Rules), err
}

// granted are the permissions of rules, such as "patch deployments.apps".
func granted(rules []rbacv1.PolicyRule) sets.Set[string] {
	all := sets.New[string]()
	for i := range rules {
		r := &rules[i]
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all.Insert(strings.TrimSuffix(verb+" "+resource+"."+group, ".") + named(r.ResourceNames))
				}
			}
		}
	}
	return all
}

func named(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " named " + strings.Join(names, ", ")
}

// upgradeFlags gives the arguments of the installed manager to this version.
func (i *installation) upgradeFlags(flags *pflag.FlagSet) []finding {
	var findings []finding
	for _, arg := range i.args {
		name, value, valued := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") {
			continue // the command, or the value of the flag before
		}
		flag := flags.Lookup(name)
		switch {
		case flag == nil:
			findings = append(findings, finding{What: "flag --" + name + " is gone, and the manager would not start with it", Action: "install without it; docs/flags.md lists the flags"})
		case flag.Deprecated != "":
			findings = append(findings, finding{Advice: true, What: "flag --" + name + " is deprecated", Action: flag.Deprecated})
		case valued:
			if err := flag.Value.Set(value); err != nil {
				findings = append(findings, finding{What: "flag " + arg + " is refused: " + err.Error(), Action: "install with another value"})
			}
		}
	}
	if len(findings) == 0 {
		findings = []finding{{OK: true, What: "all flags of the manager are still accepted"}}
	}
	return findings
}

// mostNamed is how many names a line has room for.
const mostNamed = 10

// counted says how many there are, and which.
func counted(names []string, what string) string {
	if len(names) != 1 {
		what += "s"
	}
	text := fmt.Sprintf("%d %s: %s", len(names), what, strings.Join(names[:min(len(names), mostNamed)], "; "))
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

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
		versions := slices.Sorted(maps.Keys(fieldsOf(crd)))
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
