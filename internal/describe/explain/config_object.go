package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
)

// ofConfig is a ConfigMap or a Secret: which workloads use it, and which wait for
// it.
func (a *asker) ofConfig(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	keys, exists, err := a.keys(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	var facts []describe.Fact
	link := a.lacking(lack{Ref: ref})
	if exists {
		link = a.link(ref, "", "%s %s exists and has all keys that are used", ref.Kind, ref.Name)
		facts = append(facts, describe.FactOf("keys", strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
	}
	users, waits, err := a.users(ctx, ref, keys, exists)
	switch {
	case err != nil:
		if exists {
			link.Sentence = a.place() + fmt.Sprintf("%s %s exists", ref.Kind, ref.Name)
		}
	case waits != nil:
		link = a.lacking(waits.lack)
		link.Sentence += "; " + waits.user + " is waiting for it"
	case !exists && len(users) == 0:
		return answer{}, fmt.Errorf("%s %s in namespace %s not found, and nothing uses it", ref.Kind, ref.Name, ref.Namespace)
	case len(users) == 0:
		link.Sentence = a.place() + fmt.Sprintf("%s %s exists; no workload in its namespace uses it", ref.Kind, ref.Name)
	case !exists:
		link = a.link(ref, "", "%s %s not found; it is optional for all that use it", ref.Kind, ref.Name)
	}
	for _, user := range users[:min(len(users), shownUsers)] {
		facts = append(facts, describe.FactOf("used by", user))
	}
	if more := len(users) - shownUsers; more > 0 {
		facts = append(facts, describe.FactOf("used by", fmt.Sprintf("and %d more", more)))
	}
	return answer{Links: []Link{link}, Facts: facts}, err
}

// shownUsers is how many users of an object are named.
const shownUsers = 10

// waiter is a workload that waits for something that is missing.
type waiter struct {
	lack

	user string
}

// users are the workloads of the namespace that use an object, and the first that
// lacks something of it.
func (a *asker) users(ctx context.Context, ref describe.Ref, keys map[string]bool, exists bool) (users []string, waits *waiter, err error) {
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
func (t *template) lacks(ref describe.Ref, keys map[string]bool, exists bool) *lack {
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
	owner describe.Ref
	spec  *corev1.PodSpec
}

// mentions is true if the template uses an object, be it optional.
func (t *template) mentions(ref describe.Ref) bool {
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
		all[i] = template{found[i].Ref(), &found[i].template.Spec}
	}
	return all, err
}

// templatesWith are the workloads of a namespace whose Pods have some labels.
func (a *asker) templatesWith(ctx context.Context, namespace string, with map[string]string) ([]Workload, error) {
	var found []Workload
	for _, kind := range []string{workloads.Deployment, workloads.StatefulSet, workloads.DaemonSet, describe.KindJob} {
		list := listOf(kind)
		if err := a.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for _, w := range workloadsIn(kind, list) {
			if labels.SelectorFromSet(with).Matches(labels.Set(w.template.Labels)) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}
