package pin

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Reference is an object that a Pod uses and that can be pinned.
type Reference struct {
	Kind content.Kind
	Name string
}

// References are what a Pod uses of its namespace by its volumes and the environment of its
// containers, each once, sorted. Ephemeral containers are added to a Pod that runs.
func References(spec *corev1.PodSpec) []Reference {
	seen := map[Reference]bool{}
	var refs []Reference
	visit(spec, func(kind content.Kind, name *string) {
		if r := (Reference{kind, *name}); *name != "" && !seen[r] {
			seen[r], refs = true, append(refs, r)
		}
	})
	slices.SortFunc(refs, func(a, b Reference) int {
		return compare(Pin{Kind: a.Kind, Name: a.Name}, Pin{Kind: b.Kind, Name: b.Name})
	})
	return refs
}

// Rewrite does to a Pod that is created what the policy does: each reference to an object
// with a pin becomes one to its snapshot. An error stands for a refusal.
func Rewrite(pod *corev1.Pod) error {
	text, _, ok := vocabulary.Pins.Lookup(pod.Annotations)
	if !ok {
		return nil
	}
	pins, err := Parse(text)
	if err != nil {
		return err
	}
	visit(&pod.Spec, func(kind content.Kind, name *string) {
		if p, ok := pins.Of(kind, *name); ok {
			*name = p.Snapshot()
		}
	})
	return nil
}

// visit calls a function for each name of a ConfigMap or Secret in a Pod.
func visit(spec *corev1.PodSpec, do func(content.Kind, *string)) {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.ConfigMap != nil {
			do(content.ConfigMap, &v.ConfigMap.Name)
		}
		if v.Secret != nil {
			do(content.Secret, &v.Secret.SecretName)
		}
		if v.Projected != nil {
			visitSources(v.Projected.Sources, do)
		}
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			visitContainer(&containers[i], do)
		}
	}
}

func visitSources(sources []corev1.VolumeProjection, do func(content.Kind, *string)) {
	for i := range sources {
		if s := &sources[i]; s.ConfigMap != nil {
			do(content.ConfigMap, &s.ConfigMap.Name)
		}
		if s := &sources[i]; s.Secret != nil {
			do(content.Secret, &s.Secret.Name)
		}
	}
}

func visitContainer(c *corev1.Container, do func(content.Kind, *string)) {
	for i := range c.EnvFrom {
		if from := &c.EnvFrom[i]; from.ConfigMapRef != nil {
			do(content.ConfigMap, &from.ConfigMapRef.Name)
		}
		if from := &c.EnvFrom[i]; from.SecretRef != nil {
			do(content.Secret, &from.SecretRef.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if from.ConfigMapKeyRef != nil {
			do(content.ConfigMap, &from.ConfigMapKeyRef.Name)
		}
		if from.SecretKeyRef != nil {
			do(content.Secret, &from.SecretKeyRef.Name)
		}
	}
}
