package explain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
)

// lack is a ConfigMap or a Secret that does not exist, or a key that it lacks.
type lack struct {
	describe.Ref

	// key is what it lacks, empty if it does not exist. Then wanted is a key that
	// it is to have, if that is known.
	key, wanted string
	// err is that the caller may not check whether it exists.
	err error
}

// lackOf is what a workload lacks. Of an object that does not exist it finds the key that
// the template asks for.
func lackOf(m content.Missing, w *Workload) lack {
	l := lack{describe.Ref{Kind: string(m.Object.Kind), Namespace: m.Object.Namespace, Name: m.Object.Name}, m.Key, "", nil}
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
		return "possibly " + l.Kind + " " + l.Name + ", which you may not read"
	}
	if l.key == "" {
		return l.Kind + " " + l.Name + " not found"
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
	case l.Kind != describe.KindSecret && l.Kind != describe.KindConfigMap:
		return a.kubectl("get", l.Ref)
	case l.key != "" && l.Kind == describe.KindSecret:
		return a.kubectl("patch", l.Ref, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{%q:"VALUE"}}`, key))
	case l.key != "":
		return a.kubectl("patch", l.Ref, "--type=merge", "-p", fmt.Sprintf(`{"data":{%q:"VALUE"}}`, key))
	}
	what := "configmap "
	if l.Kind == describe.KindSecret {
		what = "secret generic "
	}
	return a.command("kubectl create " + what + shell.Join(l.Name, "-n", l.Namespace, "--from-literal="+key+"=VALUE"))
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

func (n *needs) envFrom(from corev1.EnvFromSource) {
	if ref := from.ConfigMapRef; ref != nil {
		n.add(describe.KindConfigMap, ref.Name, "", ref.Optional)
	}
	if ref := from.SecretRef; ref != nil {
		n.add(describe.KindSecret, ref.Name, "", ref.Optional)
	}
}

func (n *needs) env(from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		n.add(describe.KindConfigMap, ref.Name, ref.Key, ref.Optional)
	}
	if ref := from.SecretKeyRef; ref != nil {
		n.add(describe.KindSecret, ref.Name, ref.Key, ref.Optional)
	}
}

func (n *needs) volume(v *corev1.VolumeSource) {
	if v.ConfigMap != nil {
		n.items(describe.KindConfigMap, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	}
	if v.Secret != nil {
		n.items(describe.KindSecret, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		if ref := source.ConfigMap; ref != nil {
			n.items(describe.KindConfigMap, ref.Name, ref.Items, ref.Optional)
		}
		if ref := source.Secret; ref != nil {
			n.items(describe.KindSecret, ref.Name, ref.Items, ref.Optional)
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

// keys are those of a ConfigMap or a Secret. Values are dropped immediately.
func (a *asker) keys(ctx context.Context, ref describe.Ref) (keys map[string]bool, exists bool, err error) {
	keys = map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			keys[name] = true
		}
	}
	if ref.Kind == describe.KindSecret {
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

func (n *needs) add(kind, name, key string, optional *bool) {
	if name != "" && (optional == nil || !*optional) {
		n.found = append(n.found, need{lack{describe.Ref{Kind: kind, Namespace: n.namespace, Name: name}, key, "", nil}, n.container})
	}
}
