package models

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// revisionOf is what the Pods of a template run: images, programs, the values that stand in it,
// and config by its hash. A restart is no revision, and neither is the name of a snapshot: the
// hash tells what that holds.
func revisionOf(annotations map[string]string, spec *corev1.PodSpec) world.Revision {
	v := world.Revision{Hash: vocabulary.ConfigHash.Get(annotations)}
	parts := []any{v.Hash}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		values := map[string]string{}
		for _, e := range c.Env {
			values[e.Name] = e.Value
		}
		maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
		parts = append(parts, c.Name, c.Image, c.Command, c.Args, values)
		v.Names = append(v.Names, tagsOf(c.Image)...)
	}
	raw, err := json.Marshal(parts)
	if err != nil { // strings alone can always be written
		panic(err)
	}
	v.ID = string(raw)
	return v
}

// atTemplate is that of the Pods of a template, once it is asked for.
func atTemplate(t *corev1.PodTemplateSpec) func() world.Revision {
	return func() world.Revision { return revisionOf(t.Annotations, &t.Spec) }
}

// tagsOf are the tag and the digest of an image.
func tagsOf(image string) []string {
	name, digest, pinned := strings.Cut(image, "@")
	var tags []string
	if pinned {
		tags = append(tags, digest)
	}
	if _, tag, ok := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":"); ok {
		tags = append(tags, tag)
	}
	return tags
}

// assignedRevision is what a cluster is assigned.
func assignedRevision(module, revision string) world.Revision {
	return world.Revision{ID: module + "@" + revision, Names: []string{revision}}
}

// remember notes which revisions have become ready in a cluster.
func (m *Models) remember(pods running) {
	if len(m.Readiness.OfRevision) == 0 {
		return
	}
	for of, all := range pods {
		for _, pod := range all {
			if isReady(pod) {
				m.world.Ran(of.Kind, of.Name, revisionOf(pod.Annotations, &pod.Spec))
			}
		}
	}
	for _, obj := range m.world.Store.Objects(&corev1.Pod{}, "") {
		if pod, ok := obj.(*corev1.Pod); ok && isReady(pod) {
			kind, name := owning(pod)
			m.world.Ran(kind, name, revisionOf(pod.Annotations, &pod.Spec))
		}
	}
	for _, kind := range fleetKinds() {
		for _, obj := range m.world.Store.Objects(kind, "") {
			_, status := Assignments(obj)
			m.rememberSyncs(obj.GetName(), status)
		}
	}
}

func (m *Models) rememberSyncs(cluster string, status *fleetv1.AssemblageStatus) {
	for i := range status.Syncs {
		if s := &status.Syncs[i]; s.LastSucceededRevision != "" {
			m.world.Ran("cluster", cluster, assignedRevision(s.Name, s.LastSucceededRevision))
		}
	}
}
