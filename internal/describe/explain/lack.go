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
	l := lack{Ref: *describe.RefOf(m.Object), key: m.Key}
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

// needsOf are what a Pod, or a template of one, cannot start without. Optional uses
// are none. What containers name comes before volumes, to which Kubernetes adds its own.
func needsOf(namespace string, spec *corev1.PodSpec) []lack {
	containers := &corev1.PodSpec{Containers: slices.Concat(spec.InitContainers, spec.Containers)}
	volumes := &corev1.PodSpec{Volumes: spec.Volumes}
	var needs []lack
	for _, use := range slices.Concat(content.References(namespace, containers, nil, false), content.References(namespace, volumes, nil, false)) {
		if !use.Required || use.Object.Name == "" {
			continue
		}
		if use.Whole() {
			needs = append(needs, lack{Ref: *describe.RefOf(use.Object)})
		}
		for _, key := range use.Keys {
			needs = append(needs, lack{Ref: *describe.RefOf(use.Object), key: key.Name})
		}
	}
	return needs
}

// unmet is what is lacking of an object that has some keys, or that does not exist, if it is needed; nil if it has
// what is needed.
func (l lack) unmet(keys map[string]bool, exists bool) *lack {
	switch {
	case !exists:
		return &lack{Ref: l.Ref, wanted: l.key}
	case l.key != "" && !keys[l.key]:
		return &l
	default:
		return nil
	}
}

// firstLack is the first of some needs that is not met, nil if all are. One that the
// caller may not look at is taken for it if no other is.
func (a *asker) firstLack(ctx context.Context, needs []lack) (*lack, error) {
	var unseen *lack
	for _, n := range needs {
		keys, exists, err := a.keys(ctx, n.Ref)
		switch {
		case apierrors.IsForbidden(err):
			n.err = err
			unseen = cmp.Or(unseen, &n)
		case err != nil:
			return nil, err
		default:
			if missing := n.unmet(keys, exists); missing != nil {
				return missing, nil
			}
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
