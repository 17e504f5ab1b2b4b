package describe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// lack is a ConfigMap or a Secret that is not there, or a key of one.
type lack struct {
	Ref

	// key is what it lacks, empty if it is not there at all. Then wanted is a key that
	// it is to have, if that is known.
	key, wanted string
	// err is that the caller may not look whether it is there.
	err error
}

// lackOf is what a workload lacks. Of what is not there at all it finds the key that
// the template asks for.
func lackOf(m content.Missing, w *maker) lack {
	l := lack{Ref{Kind: string(m.Object.Kind), Namespace: m.Object.Namespace, Name: m.Object.Name}, m.Key, "", nil}
	for _, n := range needsOf(w.GetNamespace(), &w.template.Spec) {
		if n.Ref == l.Ref && l.key == "" && l.wanted == "" {
			l.wanted = n.key
		}
	}
	return l
}

// String is what is missing, as a clause.
func (l lack) String() string {
	if l.err != nil {
		return "perhaps " + l.Kind + " " + l.Name + ", which you may not look at"
	}
	if l.key == "" {
		return l.Kind + " " + l.Name + " does not exist"
	}
	return l.Kind + " " + l.Name + " has no key " + l.key
}

// lacking is the root of a chain: what is missing, and how to make it.
func (a *asker) lacking(l lack) Link {
	if l.err != nil {
		return a.unseen(l.Ref, l.err)
	}
	reason := ReasonMissing
	if l.key != "" {
		reason = ReasonKeyMissing
	}
	link := a.link(l.Ref, reason, "%s", l)
	link.Next = a.supply(l)
	return link
}

// supply is the command that makes what is missing.
func (a *asker) supply(l lack) string {
	key := cmp.Or(l.key, l.wanted, "KEY")
	switch {
	case l.Kind != kindSecret && l.Kind != kindConfigMap:
		return a.kubectl("get", l.Ref)
	case l.key != "" && l.Kind == kindSecret:
		return a.kubectl("patch", l.Ref, "--type=merge", "-p", fmt.Sprintf(`'{"stringData":{%q:"VALUE"}}'`, key))
	case l.key != "":
		return a.kubectl("patch", l.Ref, "--type=merge", "-p", fmt.Sprintf(`'{"data":{%q:"VALUE"}}'`, key))
	}
	what := "configmap " + l.Name
	if l.Kind == kindSecret {
		what = "secret generic " + l.Name
	}
	return a.pointless("kubectl create " + what + " -n " + l.Namespace + " --from-literal=" + key + "=VALUE")
}

// need is a use of a ConfigMap or a Secret without which a Pod cannot start.
type need struct {
	lack

	container string
}

// needsOf are what a Pod, or a template of one, cannot start without. Optional uses
// are none.
func needsOf(namespace string, spec *corev1.PodSpec) []need {
	n := needs{namespace: namespace}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		n.container = c.Name
		for _, from := range c.EnvFrom {
			n.envFrom(from)
		}
		for _, env := range c.Env {
			n.env(env.ValueFrom)
		}
	}
	n.container = ""
	for i := range spec.Volumes {
		n.volume(&spec.Volumes[i].VolumeSource)
	}
	return n.found
}

// needs collects uses.
type needs struct {
	namespace, container string
	found                []need
}

func (n *needs) add(kind, name, key string, optional *bool) {
	if name != "" && (optional == nil || !*optional) {
		n.found = append(n.found, need{lack{Ref{Kind: kind, Namespace: n.namespace, Name: name}, key, "", nil}, n.container})
	}
}

func (n *needs) envFrom(from corev1.EnvFromSource) {
	if ref := from.ConfigMapRef; ref != nil {
		n.add(kindConfigMap, ref.Name, "", ref.Optional)
	}
	if ref := from.SecretRef; ref != nil {
		n.add(kindSecret, ref.Name, "", ref.Optional)
	}
}

func (n *needs) env(from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		n.add(kindConfigMap, ref.Name, ref.Key, ref.Optional)
	}
	if ref := from.SecretKeyRef; ref != nil {
		n.add(kindSecret, ref.Name, ref.Key, ref.Optional)
	}
}

func (n *needs) volume(v *corev1.VolumeSource) {
	if v.ConfigMap != nil {
		n.items(kindConfigMap, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	}
	if v.Secret != nil {
		n.items(kindSecret, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if ref := source.ConfigMap; ref != nil {
			n.items(kindConfigMap, ref.Name, ref.Items, ref.Optional)
		}
		if ref := source.Secret; ref != nil {
			n.items(kindSecret, ref.Name, ref.Items, ref.Optional)
		}
	}
}

func (n *needs) items(kind, name string, items []corev1.KeyToPath, optional *bool) {
	n.add(kind, name, "", optional)
	for _, item := range items {
		n.add(kind, name, item.Key, optional)
	}
}

// firstLack is the first of some needs that is not met, nil if all are. One that the
// caller may not look at is taken for it if no other is.
func (a *asker) firstLack(ctx context.Context, all []need) (*need, error) {
	var unseen *need
	for i := range all {
		n := &all[i]
		keys, exists, err := a.keys(ctx, n.Ref)
		switch {
		case apierrors.IsForbidden(err):
			n.err = err
			unseen = cmp.Or(unseen, n)
		case err != nil:
			return nil, err
		case !exists:
			return &need{lack{n.Ref, "", n.key, nil}, n.container}, nil
		case n.key != "" && !keys[n.key]:
			return n, nil
		}
	}
	return unseen, nil
}

// keys are those of a ConfigMap or a Secret. Values are dropped at once.
func (a *asker) keys(ctx context.Context, ref Ref) (keys map[string]bool, exists bool, err error) {
	keys = map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			keys[name] = true
		}
	}
	if ref.Kind == kindSecret {
		secret := &corev1.Secret{}
		err = a.get(ctx, ref, secret)
		add(slices.Collect(maps.Keys(secret.Data))...)
	} else {
		config := &corev1.ConfigMap{}
		err = a.get(ctx, ref, config)
		add(slices.Collect(maps.Keys(config.Data))...)
		add(slices.Collect(maps.Keys(config.BinaryData))...)
	}
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return keys, err == nil, err
}

// configObject is a ConfigMap or a Secret that somebody asks about: who uses it, and
// who waits for it.
func (a *asker) configObject(ctx context.Context, ref Ref, _ bool) (answer, error) {
	keys, exists, err := a.keys(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	var facts []Fact
	link := a.lacking(lack{Ref: ref})
	if exists {
		link = a.link(ref, "", "%s %s is there, and has all that is asked of it", ref.Kind, ref.Name)
		facts = append(facts, Fact{"keys", strings.Join(slices.Sorted(maps.Keys(keys)), ", ")})
	}
	users, waits, err := a.users(ctx, ref, keys, exists)
	switch {
	case err != nil:
		if exists {
			link.Sentence = a.place() + fmt.Sprintf("%s %s is there", ref.Kind, ref.Name)
		}
	case waits != nil:
		link = a.lacking(waits.lack)
		link.Sentence += "; " + waits.user + " waits for it"
	case !exists && len(users) == 0:
		return answer{}, fmt.Errorf("%s %s in namespace %s: it does not exist, and nothing uses it", ref.Kind, ref.Name, ref.Namespace)
	case len(users) == 0:
		link.Sentence = a.place() + fmt.Sprintf("%s %s is there, and no workload of its namespace uses it", ref.Kind, ref.Name)
	case !exists:
		link = a.link(ref, "", "%s %s does not exist, and all who use it can do without it", ref.Kind, ref.Name)
	}
	for _, user := range users {
		facts = append(facts, Fact{"used by", user})
	}
	return answer{links: []Link{link}, facts: facts}, err
}

// waiter is somebody who waits for something that is missing.
type waiter struct {
	lack

	user string
}

// users are the workloads of the namespace that use an object, and the first that
// lacks something of it.
func (a *asker) users(ctx context.Context, ref Ref, keys map[string]bool, exists bool) (users []string, waits *waiter, err error) {
	templates, err := a.templates(ctx, ref.Namespace)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range templates {
		if !t.mentions(ref) {
			continue
		}
		users = append(users, t.owner.String())
		if lacks := t.lacks(ref, keys, exists); lacks != nil && waits == nil {
			waits = &waiter{*lacks, t.owner.Kind + " " + t.owner.Name}
		}
	}
	return users, waits, nil
}

// lacks is what the template needs of an object and does not get, nil if it gets all.
func (t *template) lacks(ref Ref, keys map[string]bool, exists bool) *lack {
	for _, n := range needsOf(ref.Namespace, t.spec) {
		switch {
		case n.Ref != ref || exists && (n.key == "" || keys[n.key]):
		case exists:
			return &n.lack
		default:
			return &lack{Ref: ref, wanted: n.key}
		}
	}
	return nil
}

// template is a Pod template, and whose it is.
type template struct {
	owner Ref
	spec  *corev1.PodSpec
}

// mentions is true if the template uses an object, be it optional.
func (t *template) mentions(ref Ref) bool {
	spec := t.spec.DeepCopy()
	required(spec)
	return slices.ContainsFunc(needsOf(ref.Namespace, spec), func(n need) bool { return n.Ref == ref })
}

// required makes every use one that cannot be done without.
func required(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		if v := &spec.Volumes[i].VolumeSource; v.Secret != nil {
			v.Secret.Optional = nil
		} else if v.ConfigMap != nil {
			v.ConfigMap.Optional = nil
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			requiredBy(&containers[i])
		}
	}
}

func requiredBy(c *corev1.Container) {
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].SecretRef; ref != nil {
			ref.Optional = nil
		}
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			ref.Optional = nil
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from != nil && from.SecretKeyRef != nil {
			from.SecretKeyRef.Optional = nil
		}
		if from != nil && from.ConfigMapKeyRef != nil {
			from.ConfigMapKeyRef.Optional = nil
		}
	}
}

// templates are those of all workloads of a namespace.
func (a *asker) templates(ctx context.Context, namespace string) ([]template, error) {
	found, err := a.templatesWith(ctx, namespace, nil)
	all := make([]template, len(found))
	for i := range found {
		all[i] = template{found[i].ref(), &found[i].template.Spec}
	}
	return all, err
}

// templatesWith are the workloads of a namespace whose Pods have some labels.
func (a *asker) templatesWith(ctx context.Context, namespace string, with map[string]string) ([]maker, error) {
	var found []maker
	for _, kind := range []string{workloads.Deployment, workloads.StatefulSet, workloads.DaemonSet, kindJob} {
		list := listOf(kind)
		if err := a.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for _, w := range makersIn(kind, list) {
			if labels.SelectorFromSet(with).Matches(labels.Set(w.template.Labels)) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}
