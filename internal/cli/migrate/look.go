package migrate

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/nearest"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// found is a former controller in a cluster, or among manifests.
type found struct {
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// Version is the tag of its image, empty if it has none.
	Version  string `json:"version,omitempty"`
	Replicas int32  `json:"replicas"`
	// Watches are the namespaces that it acts in, none for all.
	Watches []string `json:"watches,omitempty"`
	Flags   []given  `json:"flags,omitempty"`
	// Webhooks are the configurations by which the API server calls it, KIND/NAME.
	Webhooks []string `json:"webhooks,omitempty"`
	// Uses is how many objects of each kind it acts on.
	Uses []use `json:"uses,omitempty"`
	// Differs names the page with every difference.
	Differs string `json:"differs"`

	// uses reports whether an object is one that it acts on, in any namespace.
	uses func(*unstructured.Unstructured) bool
	of   *former
}

type use struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

func (f *found) ref() string { return strings.ToLower(f.Kind) + "/" + f.Name }

// point is what must be decided before anything is done.
type point struct {
	// Code names it for --accept.
	Code string `json:"code"`
	// Object is what it is about, with file and line among manifests.
	Object string `json:"object"`
	What   string `json:"what"`
	Action string `json:"action"`
}

// kinds are those of which objects are read, with the latest version that former controllers have.
func kinds() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for version, names := range map[schema.GroupVersion][]string{
		{Group: "apps", Version: "v1"}: {"Deployment", "StatefulSet", "DaemonSet"},
		workload.ArgoVersion:           {workload.ArgoRollout},
		{Version: "v1"}:                {"Service"},
		{Group: "admissionregistration.k8s.io", Version: "v1"}: {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
		{Group: "rollout-operator.grafana.com", Version: "v1"}: {"ReplicaTemplate", "ZoneAwarePodDisruptionBudget"},
		{Group: "kudo.dev", Version: "v1beta1"}:                {"Operator", "OperatorVersion", "Instance"},
		{Group: "fleet.squaremo.dev", Version: "v1alpha1"}:     {"Module", "BootstrapModule", "Assemblage", "RemoteAssemblage", "ProxyAssemblage"},
	} {
		for _, name := range names {
			all = append(all, version.WithKind(name))
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// rolledKinds are those of which objects are rolled, or run a plan.
func rolledKinds() []schema.GroupVersionKind {
	return slices.DeleteFunc(kinds(), func(k schema.GroupVersionKind) bool {
		return !slices.Contains(workload.Kinds(), k.Kind) && k.Kind != "Instance" && k.Kind != workload.ArgoRollout
	})
}

func objectsOf(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := c.List(ctx, list)
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

func (m *migration) find(objects []*unstructured.Unstructured) []found {
	var all []found
	for i := range m.from {
		p := &m.from[i]
		for _, u := range objects {
			c, version := p.container(u)
			if c == nil {
				continue
			}
			f := found{Controller: p.name, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Version: version, Replicas: replicasOf(u), Differs: p.page, of: p, uses: p.uses}
			f.Flags, f.Watches = p.flagsOf(c, m.managerFlags(), u.GetNamespace())
			f.Webhooks = webhooksOf(u, objects)
			f.rename()
			f.Uses = f.count(objects)
			all = append(all, f)
		}
	}
	return all
}

// rename has the names of annotations count that flags of Reloader give them, and all workloads if it rolls all.
func (f *found) rename() {
	names, all := map[string]bool{}, false
	for _, flag := range f.Flags {
		all = all || flag.Manager == "--auto-reload-all=true"
		if slices.ContainsFunc(vocabulary.ReloaderKeys(), func(k vocabulary.FormerKey) bool { return f.Controller == "reloader" && k.Flag == flag.Name }) {
			names[flag.Value] = true
		}
	}
	if uses := f.of.uses; len(names) > 0 || all {
		renamed := annotated(func(name string) bool { return names[name] }, isReloaded)
		f.uses = func(u *unstructured.Unstructured) bool { return uses(u) || renamed(u) || all && isReloaded(u) }
	}
}

func replicasOf(u *unstructured.Unstructured) int32 {
	replicas, set, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !set {
		return 1
	}
	return int32(replicas) //nolint:gosec // the API server has no larger ones
}

// acts reports whether the former controller acts on an object: it is of its kinds or annotations, and in a namespace that
// it watches.
func (f *found) acts(u *unstructured.Unstructured) bool {
	return f.uses(u) && (len(f.Watches) == 0 || slices.Contains(f.Watches, u.GetNamespace()))
}

func (f *found) count(objects []*unstructured.Unstructured) (uses []use) {
	counts := map[string]int{}
	for _, u := range objects {
		if f.acts(u) {
			counts[u.GetKind()]++
		}
	}
	for _, kind := range kinds() {
		if n := counts[kind.Kind]; n > 0 {
			uses = append(uses, use{kind.Kind, n})
		}
	}
	return uses
}

// webhooksOf are the configurations whose Service selects the Pods of a workload.
func webhooksOf(former *unstructured.Unstructured, objects []*unstructured.Unstructured) (names []string) {
	template, _, _ := unstructured.NestedStringMap(former.Object, "spec", "template", "metadata", "labels")
	serves := map[string]bool{}
	for _, u := range objects {
		selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector")
		if u.GetKind() == "Service" && u.GetNamespace() == former.GetNamespace() && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(template)) {
			serves[u.GetName()] = true
		}
	}
	for _, u := range objects {
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		calls := slices.ContainsFunc(hooks, func(hook any) bool {
			h, _ := hook.(map[string]any)
			namespace, _, _ := unstructured.NestedString(h, "clientConfig", "service", "namespace")
			name, _, _ := unstructured.NestedString(h, "clientConfig", "service", "name")
			return namespace == former.GetNamespace() && serves[name]
		})
		if calls {
			names = append(names, u.GetKind()+"/"+u.GetName())
		}
	}
	return names
}

func (m *migration) undecided(all []found, objects []*unstructured.Unstructured) (points []point) {
	for i := range all {
		several := i > 0 && all[i-1].Controller == all[i].Controller
		points = append(points, m.undecidedOn(&all[i], several)...)
	}
	for _, u := range objects {
		points = append(points, m.undecidedOf(u, all)...)
	}
	return points
}

// undecidedOn is what a user has to decide about a former controller, which may be one of several of the same program.
func (m *migration) undecidedOn(f *found, several bool) (points []point) {
	at := f.ref() + " in namespace " + f.Namespace + m.place(f.Kind, f.Namespace, f.Name)
	for _, p := range []struct {
		is    bool
		point point
	}{
		{f.Version == "" || f.Version == "latest", point{"version", at, "has an image that names no version", "compare its version with the one on the page that says what differs"}},
		{f.Replicas == 0, point{"not-running", at, "is scaled to zero", "nothing acts on its objects now; accept it if that is meant"}},
		{len(f.Uses) == 0, point{"unused", at, "acts on nothing that was found", "look for renamed annotations and for other namespaces, or accept it"}},
		{several, point{"several", at, "is one of several of " + f.Controller + ", with arguments of its own", "give all of them the same arguments, or change over the namespaces of one after the other"}},
	} {
		if p.is {
			points = append(points, p.point)
		}
	}
	for _, flag := range f.Flags {
		if flag.unknown {
			points = append(points, point{"flag", at, "runs with --" + flag.Name + "=" + flag.Value + ": " + flag.Instead, "find out what it does, and give the manager what you need after --"})
		}
	}
	return points
}

// undecidedOf is what a user has to decide about an object that former controllers act on.
func (m *migration) undecidedOf(u *unstructured.Unstructured, all []found) (points []point) {
	var by []string
	for i := range all {
		if all[i].acts(u) && isWorkload(u) && !slices.Contains(by, all[i].Controller) {
			by = append(by, all[i].Controller)
		}
	}
	object := strings.ToLower(u.GetKind()) + "/" + u.GetName() + " in namespace " + u.GetNamespace() + m.place(u.GetKind(), u.GetNamespace(), u.GetName())
	if slices.Contains(by, "wave") && slices.Contains(by, "reloader") {
		points = append(points, point{"both", object, "has annotations of wave and of Reloader", "those of wave will decide; remove the others, or accept it"})
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused && u.GetAnnotations()[vocabulary.ReloaderPausedAt] != "" {
		points = append(points, point{"paused", object, "is paused by Reloader until its pause-period ends", "wait until it is resumed, or resume it with kubectl rollout resume"})
	}
	return points
}

// place is where an object stands among manifests, empty in a cluster.
func (m *migration) place(kind, namespace, name string) string {
	for i := range m.documents {
		d := &m.documents[i]
		if o := d.Object; o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			return fmt.Sprintf(" (%s:%d)", d.File, d.Line)
		}
	}
	return ""
}

// watched are the namespaces that all former controllers together watch, none for all.
func watched(all []found) []string {
	if slices.ContainsFunc(all, func(f found) bool { return len(f.Watches) == 0 }) {
		return nil
	}
	return gathered(all, func(f *found) []string { return f.Watches })
}

// podsOf reads the Pods of a former controller, also those that are terminating.
func podsOf(ctx context.Context, c client.Reader, u *unstructured.Unstructured) ([]corev1.Pod, error) {
	of := &metav1.LabelSelector{}
	raw, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
	err := toTyped(raw, of)
	var selector labels.Selector
	if err == nil {
		selector, err = metav1.LabelSelectorAsSelector(of)
	}
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(u.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the Pods of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return pods.Items, nil
}

var toTyped = runtime.DefaultUnstructuredConverter.FromUnstructured

// lost is what the manager keeps from happening, and the former controller would do.
func (m *migration) lost(ctx context.Context) (points []point, err error) {
	objects, err := objectsOf(ctx, m.client, append(kinds(), v1alpha1.GroupVersion.WithKind("RolloutGroup")))
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		points = append(points, lostOf(u)...)
	}
	records := &v1alpha1.ConfigRolloutList{}
	err = m.client.List(ctx, records)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return points, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ConfigRollouts: %w", err)
	}
	for i := range records.Items {
		r := &records.Items[i]
		switch {
		case r.Failed > 0:
			points = append(points, point{"failed", "configrollout/" + r.Name + " in namespace " + r.Namespace, "stops a content with which a workload has failed", "correct the config, or accept that the former controller rolls it everywhere"})
		case r.Rollout != nil && r.Rollout.FinishedAt == nil:
			points = append(points, moving("configrollout/"+r.Name+" in namespace "+r.Namespace))
		}
	}
	return points, nil
}

// lostOf is what a former controller does not know of an object, or would do with it.
func lostOf(u *unstructured.Unstructured) (points []point) {
	object := strings.ToLower(u.GetKind()) + "/" + u.GetName() + " in namespace " + u.GetNamespace()
	if record, is, _ := unstructured.NestedMap(u.Object, "status", "rollout"); is && record["finishedAt"] == nil {
		points = append(points, moving(object))
	}
	if _, is, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec", "sync"); is {
		points = append(points, point{"template", object, "has spec.template, which fleeet does not read", "write its sync beside the selector, or accept that fleeet assigns nothing"})
	}
	if vocabulary.Paused.Get(u.GetAnnotations()) == "true" {
		points = append(points, point{"paused", object, "is paused, which the former controller does not know", "resume it, or accept that it is rolled"})
	}
	return points
}

// moving is about a rollout that the former controller would go on with in its own order.
func moving(object string) point {
	return point{"moving", object, "is not complete", "wait until it is, or accept that the former controller rolls the rest at the same time"}
}

// former is a program whose work Spillway carries on.
type former struct {
	name string
	// rings do its work.
	rings []string
	// image is how the names of its images end, without tag and digest.
	image *regexp.Regexp
	// page is the one that says what differs.
	page string
	// args are those of the manager that it needs, which spillway install has, too.
	args []string
	// uses reports whether an object is one that it acts on.
	uses func(*unstructured.Unstructured) bool
	// names are its annotations and flags, with their counterparts.
	names *vocabulary.Former
}

func formers() []former {
	all := []former{
		{
			name: "wave", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)wave$`), page: "from-wave.md",
			uses: annotated(func(name string) bool { return slices.Contains(vocabulary.ConfigTracked.Aliases, name) }, isWorkload),
		},
		{
			name: "reloader", rings: []string{manager.RingConfig}, image: regexp.MustCompile(`(^|/)reloader(-ubi)?$`), page: "from-reloader.md",
			args: []string{"--" + command.ReloaderAnnotations}, uses: annotated(vocabulary.IsOfReloader, isReloaded),
		},
		{
			name: "rollout-operator", rings: []string{manager.RingZones}, image: regexp.MustCompile(`(^|/)rollout-operator(-boringcrypto)?$`), page: "from-rollout-operator.md",
			uses: func(u *unstructured.Unstructured) bool {
				return u.GetKind() == "StatefulSet" && vocabulary.GroupOf(u.GetLabels(), u.GetAnnotations()) != "" || u.GroupVersionKind().Group == "rollout-operator.grafana.com"
			},
		},
		{
			name: "kudo", rings: []string{manager.RingPlans}, image: regexp.MustCompile(`(^|/)kudobuilder/controller$`), page: "from-kudo.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == "kudo.dev" },
		},
		{
			name: fleeet, rings: []string{manager.RingFleet}, image: regexp.MustCompile(`(^|/)fleeet-control$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GroupVersionKind().Group == "fleet.squaremo.dev" },
		},
		{
			name: fleeet + "-assemblage", rings: []string{manager.RingAssemblage}, image: regexp.MustCompile(`(^|/)fleeet-assemblage$`), page: "from-fleeet.md",
			uses: func(u *unstructured.Unstructured) bool { return u.GetKind() == "Assemblage" },
		},
	}
	for i := range all {
		all[i].names = vocabulary.FormerOf(all[i].program())
	}
	return all
}

// program is the name that the parts of a former program share.
func (p *former) program() string { return strings.TrimSuffix(p.name, "-assemblage") }

// fleeet is the name of one of which two programs run, with the same beginning.
const fleeet = "fleeet"

// auto stands for whichever are found.
const auto = "auto"

// named are the former controllers of a name, all of them for [auto].
func named(name string) ([]former, error) {
	all := formers()
	if name == auto {
		return all, nil
	}
	of := slices.DeleteFunc(slices.Clone(all), func(p former) bool { return p.program() != name })
	if len(of) == 0 {
		return nil, fmt.Errorf("--from: %q is not known; use wave, reloader, rollout-operator, kudo, fleeet, or auto for what is found", name)
	}
	return of, nil
}

// annotated is true of objects of some kinds with an annotation whose name is one.
func annotated(is func(name string) bool, kinds func(*unstructured.Unstructured) bool) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		template, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
		for _, annotations := range []map[string]string{u.GetAnnotations(), template} {
			for name := range annotations {
				if is(name) && kinds(u) {
					return true
				}
			}
		}
		return false
	}
}

// isWorkload reports whether an object has a Pod template that is rolled.
func isWorkload(u *unstructured.Unstructured) bool {
	return slices.Contains(workload.Kinds(), u.GetKind())
}

// isReloaded reports whether an object is one that Reloader rolls: a workload, or a Rollout of Argo.
func isReloaded(u *unstructured.Unstructured) bool {
	return isWorkload(u) || u.GroupVersionKind() == workload.ArgoVersion.WithKind(workload.ArgoRollout)
}

// container is the one of a workload that has an image of the former controller, nil if there is none, and the tag of the image.
func (p *former) container(u *unstructured.Unstructured) (c *corev1.Container, tag string) {
	pod := &corev1.PodSpec{}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	if !isWorkload(u) || runtime.DefaultUnstructuredConverter.FromUnstructured(spec, pod) != nil {
		return nil, ""
	}
	for i := range pod.Containers {
		image, _, _ := strings.Cut(pod.Containers[i].Image, "@")
		tag = ""
		if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
			image, tag = image[:at], image[at+1:]
		}
		if p.image.MatchString(image) {
			return &pod.Containers[i], tag
		}
	}
	return nil, ""
}

// given is a flag or a variable of a former controller, and what becomes of it.
type given struct {
	// Name is the flag without dashes, or the variable, and Value what it is set to.
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	// Manager is the argument of the manager that has the same effect, empty if there is none.
	Manager string `json:"manager,omitempty"`
	// Instead says what has its effect, or why none is needed.
	Instead string `json:"instead,omitempty"`
	// unknown is true of what is neither carried over nor explained.
	unknown bool
}

// flagsOf reads the arguments and the variables of a former controller. Namespaces are those that it watches, none for all.
func (p *former) flagsOf(c *corev1.Container, ours *pflag.FlagSet, namespace string) (flags []given, namespaces []string) {
	args := slices.Concat(c.Command[min(1, len(c.Command)):], c.Args)
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || name == "" {
			continue // the name of a program, or of a command
		}
		if f := ours.Lookup(name); !has && (f == nil || f.NoOptDefVal == "") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i, value = i+1, args[i+1]
		}
		if known := p.names.FlagOf(name); known != nil && known.As == vocabulary.WatchNamespaces {
			namespaces = append(namespaces, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
			flags = append(flags, given{Name: name, Value: value, Instead: watches})
			continue
		}
		flags = append(flags, p.carriedOver(name, value, ours))
	}
	more, own := p.variablesOf(c, ours, namespace)
	flags, namespaces = append(flags, more...), append(namespaces, own...)
	slices.Sort(namespaces)
	return flags, slices.Compact(namespaces)
}

// watches is what names the namespaces to watch.
const watches = "spillway install --" + vocabulary.WatchNamespaces

// variablesOf is what a former controller reads of its environment.
func (p *former) variablesOf(c *corev1.Container, ours *pflag.FlagSet, namespace string) (flags []given, namespaces []string) {
	for _, v := range c.Env {
		known := p.names.FlagOf(v.Name)
		own := v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		switch {
		case known == nil:
		case known.As != vocabulary.WatchNamespaces:
			g := p.carriedOver(v.Name, v.Value, ours)
			if g.Manager == "" {
				g.Value = "" // it may be a secret
			}
			flags = append(flags, g)
		case own || v.Value != "":
			namespaces = append(namespaces, cmp.Or(v.Value, namespace))
			flags = append(flags, given{Name: v.Name, Value: cmp.Or(v.Value, namespace), Instead: watches})
		}
	}
	return flags, namespaces
}

// carriedOver is what becomes of one flag, or of a variable.
func (p *former) carriedOver(name, value string, ours *pflag.FlagSet) given {
	g, target, known := given{Name: name, Value: value}, name, p.names.FlagOf(name)
	if known != nil {
		target = known.Target()
	}
	f := ours.Lookup(target)
	switch {
	case known != nil && target == "":
		g.Instead = plain(cmp.Or(known.Differs, "nothing is needed: spillway install sets its own"))
	case f == nil:
		g.Instead, g.unknown = "it is not known"+near(name, ours), true
	default:
		if value == "" {
			value = cmp.Or(f.NoOptDefVal, "true")
		}
		if err := ours.Set(target, value); err != nil {
			g.Instead, g.unknown = "the manager does not accept the value: "+err.Error(), true
			break
		}
		g.Manager = "--" + target + "=" + value
	}
	return g
}

// plain is text of a page as a terminal shows it: without marks for code, and with the file that a link leads to behind its text.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1 ($2)"), "`", "")
}

var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// near suggests a flag of the manager.
func near(name string, ours *pflag.FlagSet) string {
	var names []string
	ours.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := nearest.Meant(name, names); meant != "" {
		return "; the manager has --" + meant
	}
	return ""
}
