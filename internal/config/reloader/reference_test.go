package reloader_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// changed is an object that was edited.
type changed struct {
	kind, name          string
	annotations, labels map[string]string
	// namespace has it, with this label.
	namespace, team string
}

// flags are those that the reference knows.
type flags struct {
	all, csi, renamed bool
	// left is the namespace that is ignored, and team the label by which namespaces are selected; empty for none.
	left, team string
	ignored    string
	app        string
}

// isRolled is what Reloader does upon an edit, event by event, as its code has it: a second description of the
// same, which shares nothing with the package but the types.
func isRolled(f flags, w reloader.Workload, edit changed) bool {
	isWatched := edit.namespace != f.left && (f.team == "" || f.team == edit.team) && edit.kind != f.ignored && (edit.kind != "secretproviderclass" || f.csi) && (f.app == "" || edit.labels["app"] == f.app)
	if !isWatched || edit.annotations["reloader.stakater.com/ignore"] == "true" {
		return false
	}
	var (
		prefix   = edit.kind + ".reloader.stakater.com/"
		plural   = map[string]string{"configmap": "configmaps", "secret": "secrets", "secretproviderclass": "secretproviderclasses"}[edit.kind]
		from     = w.Template
		triggers = []string{prefix + "reload", prefix + "auto", "reloader.stakater.com/auto", "reloader.stakater.com/search"}
	)
	for key := range w.Annotations {
		if slices.Contains(triggers, key) {
			from = w.Annotations
		}
	}
	for excluded := range strings.SplitSeq(w.Annotations[plural+".exclude.reloader.stakater.com/reload"], ",") {
		if strings.Trim(excluded, " ") == edit.name {
			return false
		}
	}
	for listed := range strings.SplitSeq(from[prefix+"reload"], ",") {
		if is, err := regexp.MatchString("^"+strings.Trim(listed, " ")+"$", edit.name); err == nil && is {
			return true
		}
	}
	truth := []string{"1", "t", "T", "true", "TRUE", "True"}
	auto, typed := from["reloader.stakater.com/auto"], from[prefix+"auto"]
	searched := from["reloader.stakater.com/search"] == "true" && edit.annotations["reloader.stakater.com/match"] == "true"
	isAuto := slices.Contains(truth, auto) || slices.Contains(truth, typed) || f.all && auto+typed == ""
	return (searched || isAuto) && isRead(w.Pod, edit)
}

// isRead asks each container whether it names the object.
func isRead(pod *corev1.PodSpec, edit changed) bool {
	for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
		var named []string
		for _, e := range c.EnvFrom {
			named = append(named, namesIn(e.ConfigMapRef, e.SecretRef)...)
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				named = append(named, namesIn(e.ValueFrom.ConfigMapKeyRef, e.ValueFrom.SecretKeyRef)...)
			}
		}
		for _, m := range c.VolumeMounts {
			i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			named = append(named, namesOf(pod.Volumes[i])...)
		}
		if slices.Contains(named, edit.kind+"/"+edit.name) {
			return true
		}
	}
	return false
}

// namesIn are the names of two references, either of which may be nil.
func namesIn(configMap, secret any) (names []string) {
	switch ref := configMap.(type) {
	case *corev1.ConfigMapEnvSource:
		if ref != nil {
			names = append(names, "configmap/"+ref.Name)
		}
	case *corev1.ConfigMapKeySelector:
		if ref != nil {
			names = append(names, "configmap/"+ref.Name)
		}
	}
	switch ref := secret.(type) {
	case *corev1.SecretEnvSource:
		if ref != nil {
			names = append(names, "secret/"+ref.Name)
		}
	case *corev1.SecretKeySelector:
		if ref != nil {
			names = append(names, "secret/"+ref.Name)
		}
	}
	return names
}

func namesOf(v corev1.Volume) []string {
	switch {
	case v.ConfigMap != nil:
		return []string{"configmap/" + v.ConfigMap.Name}
	case v.Secret != nil:
		return []string{"secret/" + v.Secret.SecretName}
	case v.CSI != nil:
		return []string{"secretproviderclass/" + v.CSI.VolumeAttributes["secretProviderClass"]}
	case v.Projected == nil:
		return nil
	}
	var names []string
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			names = append(names, "configmap/"+s.ConfigMap.Name)
		}
		if s.Secret != nil {
			names = append(names, "secret/"+s.Secret.Name)
		}
	}
	return names
}

// chance makes random workloads and objects.
type chance struct{ *rand.Rand }

func (c chance) in(n int) bool { return c.IntN(n) == 0 }

func (c chance) of(from ...string) string { return from[c.IntN(len(from))] }

func (c chance) name() string {
	return c.of("app", "app-one", "app.two", "appxtwo", "db", "db-app", "web")
}

func (c chance) kind() string { return c.of("configmap", "secret", "secretproviderclass") }

func (c chance) list() string {
	var entries []string
	for range 1 + c.IntN(3) {
		entries = append(entries, c.of(c.name(), c.name(), " "+c.name()+" ", "app|db", "app.*", "(app|web)", ".*-app", "app(", "", `\Qapp`, "(?i)APP", "[^a].*"))
	}
	return strings.Join(entries, ",")
}

func (c chance) annotations() map[string]string {
	truth := []string{"true", "true", "false", "1", "t", "TRUE", "True", "yes", "", "F"}
	all := map[string]string{}
	for _, key := range []string{"auto", "search"} {
		if c.in(4) {
			all["reloader.stakater.com/"+key] = c.of(truth...)
		}
	}
	for kind, plural := range map[string]string{"configmap": "configmaps", "secret": "secrets", "secretproviderclass": "secretproviderclasses"} {
		if c.in(5) {
			all[kind+".reloader.stakater.com/auto"] = c.of(truth...)
		}
		if c.in(5) {
			all[kind+".reloader.stakater.com/reload"] = c.list()
		}
		if c.in(6) {
			all[plural+".exclude.reloader.stakater.com/reload"] = c.list()
		}
	}
	return all
}

func (c chance) volume(name string) corev1.Volume {
	v := corev1.Volume{Name: name}
	switch c.kind() {
	case "configmap":
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: c.name()}}
	case "secret":
		v.Secret = &corev1.SecretVolumeSource{SecretName: c.name()}
	default:
		v.CSI = &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": c.name()}}
	}
	if c.in(4) {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: c.name()}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: c.name()}}},
		}}}}
	}
	return v
}

func (c chance) container(volumes []corev1.Volume) corev1.Container {
	of := corev1.Container{}
	for range c.IntN(3) {
		from, ref := corev1.EnvFromSource{}, corev1.LocalObjectReference{Name: c.name()}
		if c.in(2) {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: ref}
		} else {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: ref}
		}
		of.EnvFrom = append(of.EnvFrom, from)
	}
	for range c.IntN(3) {
		e, ref := corev1.EnvVar{Name: "A"}, corev1.LocalObjectReference{Name: c.name()}
		switch c.IntN(3) {
		case 0:
			e.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "k"}}
		case 1:
			e.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k"}}
		}
		of.Env = append(of.Env, e)
	}
	for i := range volumes {
		if c.in(2) {
			of.VolumeMounts = append(of.VolumeMounts, corev1.VolumeMount{Name: volumes[i].Name})
		}
	}
	return of
}

func (c chance) workload() reloader.Workload {
	w := reloader.Workload{Kind: c.of("Deployment", "StatefulSet", "DaemonSet"), Annotations: c.annotations(), Pod: &corev1.PodSpec{}}
	if c.in(2) {
		w.Template = c.annotations()
	}
	if c.in(3) {
		w.Annotations = nil
	}
	for i := range c.IntN(4) {
		w.Pod.Volumes = append(w.Pod.Volumes, c.volume(fmt.Sprint("v", i)))
	}
	w.Pod.Containers = []corev1.Container{c.container(w.Pod.Volumes)}
	if c.in(2) {
		w.Pod.InitContainers = []corev1.Container{c.container(w.Pod.Volumes)}
	}
	return w
}

func (c chance) object() changed {
	o := changed{namespace: "shop", team: c.of("a", "b"), kind: c.kind(), name: c.name(), annotations: map[string]string{}, labels: map[string]string{"app": c.of("a", "b")}}
	if c.in(3) {
		o.annotations["reloader.stakater.com/"+c.of("match", "match", "ignore")] = c.of("true", "true", "True", "false")
	}
	return o
}

// options are the flags as the package has them.
func (f flags) options() *reloader.Options {
	o := &reloader.Options{AutoAll: f.all, Classes: f.csi, IgnoredNamespaces: []string{f.left}}
	if f.team != "" {
		o.Namespaces = &reloader.Selected{Selector: labels.SelectorFromSet(labels.Set{"team": f.team})}
	}
	if f.renamed {
		o.Names = map[string]string{}
		for _, k := range vocabulary.ReloaderKeys() {
			o.Names[k.Name] = renamedTo(k.Name)
		}
	}
	return o
}

// rename gives annotations the names that flags have given them.
func (f flags) rename(annotations map[string]string) map[string]string {
	if !f.renamed || annotations == nil {
		return annotations
	}
	all := map[string]string{}
	for name, value := range annotations {
		all[renamedTo(name)] = value
	}
	return all
}

func renamedTo(name string) string { return "example.com/" + strings.ReplaceAll(name, "/", "-") }

// A thousand random workloads are rolled by what a second description of Reloader says, each time.
func TestRandomWorkloadsRollAsReloaderHasIt(t *testing.T) {
	t.Parallel()
	c := chance{rand.New(rand.NewPCG(1, 2))}
	kinds := map[string]content.Kind{"configmap": content.ConfigMap, "secret": content.Secret, "secretproviderclass": content.SecretProviderClass}
	rolled, edits := 0, 0
	for range 1000 {
		f := flags{left: c.of("", "", "", "shop"), team: c.of("", "", "a"), renamed: c.in(4), all: c.in(4), csi: c.in(2), ignored: c.of("", "", "", "configmap", "secret"), app: c.of("", "", "a")}
		o := f.options()
		if f.ignored != "" {
			o.IgnoredKinds = []content.Kind{kinds[f.ignored]}
		}
		if f.app != "" {
			o.Selector = labels.SelectorFromSet(labels.Set{"app": f.app})
		}
		w := c.workload()
		named := w
		named.Annotations, named.Template = f.rename(w.Annotations), f.rename(w.Template)
		wants := o.Read(named)
		for range 20 {
			edit := c.object()
			if o.Namespaces != nil {
				o.Namespaces.Observe(time.Time{}, map[string]labels.Set{edit.namespace: {"team": edit.team}})
			}
			isRead := o.Concerns(edit.namespace, named.Annotations, named.Template)
			got, want := isRead && wants.RolledBy(kinds[edit.kind], edit.name, o.MarkOf(f.rename(edit.annotations), edit.labels)), isRolled(f, w, edit)
			if got != want {
				t.Fatalf("%s %s with %v, %v: rolled %v, want %v\nflags %+v\nannotations %v\ntemplate %v\npod %+v", edit.kind, edit.name, slices.Sorted(maps.Keys(edit.annotations)), edit.labels, got, want, f, w.Annotations, w.Template, w.Pod)
			}
			if edits++; got {
				rolled++
			}
			if got && !wants.MayRoll() {
				t.Fatalf("what rolls it may not: %v", w.Annotations)
			}
		}
	}
	if rolled < edits/20 || rolled > edits*19/20 {
		t.Errorf("%d of %d edits roll: that compares nothing", rolled, edits)
	}
}
