package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func configRules() []Rule {
	return []Rule{
		{
			Code: "SPW101", Level: Error, Title: "An annotation about config cannot be understood",
			Why:    "The config ring takes what it does not understand as if it were not there, and says so on the workload.",
			Action: "Correct the value, or take the annotation out.", check: configAnnotations,
		},
		{
			Code: "SPW102", Level: Warning, Title: "Annotations about config on a workload whose config is not followed",
			Why:    "They count only where " + vocabulary.ConfigTracked.Native + " is \"true\".",
			Action: "Set " + vocabulary.ConfigTracked.Native + " to \"true\", or take them out.", check: untracked,
		},
		{
			Code: "SPW103", Level: Note, Title: "Config that a workload needs is not among the manifests",
			Why:    "It may be in the cluster already, or come from somewhere else. Until it is there the workload waits.",
			Action: "Add it, or make sure that it is there before the workload.", check: absentConfig,
		},
		{
			Code: "SPW104", Level: Error, Title: "A workload needs a key that its ConfigMap or Secret does not have",
			Why:    "Its Pods cannot start, and no change of config rolls it until the key is there. What a controller fills in is left out, as far as its type, its labels or its annotations say so.",
			Action: "Add the key, fix its name, or mark the reference as optional.", check: absentKeys,
		},
		{
			Code: "SPW105", Level: Warning, Title: "A ConfigMap or Secret that nothing uses",
			Why:    "No Pod refers to it, no other manifest names it in a field, an argument or an annotation, and it has neither a type nor a label by which others find it. A change of it rolls nothing.",
			Action: "Delete it, or name it where it is read: " + vocabulary.ExtraConfigMaps.Native + ", " + vocabulary.ExtraSecrets.Native + ".", check: unusedConfig,
		},
		{
			Code: "SPW106", Level: Warning, Title: "Config of another namespace that is not shared",
			Why:    "Config of another namespace counts only if it says itself who may name it, or if the manager runs with --allow-cross-namespace; until then the workload waits.",
			Action: "Annotate it with " + vocabulary.SharedWith.Native + " and the namespace of the workload.", check: unshared,
		},
		{
			Code: "SPW107", Level: Warning, Title: "A workload ignores config that it does not use",
			Why:    "The annotation has no effect; its name may be misspelled.",
			Action: "Fix the name, or take it out.", check: ignoredInVain,
		},
		{
			Code: "SPW108", Level: Warning, Title: "A workload follows config and uses none",
			Why:    "Nothing will ever roll it.",
			Action: "Name what its application reads by itself as extra config, or take the annotation out.", check: nothingToFollow,
		},
		{
			Code: "SPW109", Level: Note, Title: "A workload needs a key of a ConfigMap or Secret without data",
			Why:    "Its Pods cannot start until somebody fills it in, as an operator, a person or a program may do.",
			Action: "Make sure that it is filled in, or add the key.", check: emptyConfig,
		},
		{
			Code: "SPW110", Level: Note, Title: "A ConfigMap or Secret that nothing names, and that somebody may be reading",
			Why:    "Something in its namespace is permitted to read all config there, or it is shared with other namespaces, or the namespace is one of Kubernetes itself. Whether it is used cannot be seen from here.",
			Action: "Delete it if nothing uses it.", check: possiblyUnused,
		},
	}
}

// tracked visits the workloads whose config is followed.
func tracked(m *Manifests, visit func(*Object, workload.Manifest)) {
	for _, o := range m.Objects {
		if !o.canTrack() {
			continue
		}
		if manifest := workload.ManifestOf(o.Typed); manifest.Tracked {
			visit(o, manifest)
		}
	}
}

func configAnnotations(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		if !o.canTrack() {
			continue
		}
		for _, p := range workload.ManifestOf(o.Typed).Problems {
			r.findf(o, annotation(p.Annotation), "%s", p)
		}
	}
}

// needTracking are keys that are of use only on workloads whose config is followed.
func needTracking() []vocabulary.Key {
	return []vocabulary.Key{
		vocabulary.ExtraConfigMaps, vocabulary.ExtraSecrets, vocabulary.IgnoredConfigMaps, vocabulary.IgnoredSecrets,
		vocabulary.ImagePullSecrets, vocabulary.CoalesceWindow, vocabulary.Priority, vocabulary.Paused,
	}
}

func untracked(m *Manifests, r *reporter) {
	for _, o := range m.Objects {
		if !o.canTrack() || workload.ManifestOf(o.Typed).Tracked {
			continue
		}
		for _, key := range needTracking() {
			if _, name, ok := key.Lookup(o.Object.GetAnnotations()); ok {
				r.findf(o, annotation(name), "%s has no effect: changes of config do not roll it", name)
			}
		}
	}
}

// references are the fields in which a Pod names a ConfigMap or a Secret.
var references = map[content.Kind][]string{
	content.ConfigMap: {"configMap", "configMapRef", "configMapKeyRef"},
	content.Secret:    {"secret", "secretRef", "secretKeyRef", "imagePullSecrets"},
}

// useLine is where a workload refers to an object, or to a key of it: in its
// template, or by an annotation.
func useLine(o *Object, ref *content.Reference, key string) []string {
	if !ref.Extra {
		_, path := o.pods()
		return o.locate(path, func(parent []string, value map[string]any) bool {
			name, _ := value["name"].(string)
			if secret, ok := value["secretName"].(string); ok {
				name = secret
			}
			named := slices.ContainsFunc(references[ref.Object.Kind], func(field string) bool { return slices.Contains(parent[len(path):], field) })
			return named && name == ref.Object.Name && (key == "" || value["key"] == nil || value["key"] == key)
		})
	}
	if ref.Object.Kind == content.Secret {
		return o.keyed(vocabulary.ExtraSecrets)
	}
	return o.keyed(vocabulary.ExtraConfigMaps)
}

// absentConfig notes what a Pod cannot start without, and what an annotation names.
func absentConfig(m *Manifests, r *reporter) {
	tracked(m, func(o *Object, manifest workload.Manifest) {
		for i := range manifest.Uses {
			ref := &manifest.Uses[i]
			if (ref.Required || ref.Extra) && !m.isThere(ref.Object) {
				r.findf(o, useLine(o, ref, ""), "%s is not among the manifests", ref.Object.From(o.namespace()))
			}
		}
	})
}

// absentKeys finds keys that are needed and not there, beside others that are.
func absentKeys(m *Manifests, r *reporter) {
	neededKeys(m, func(o, there *Object, ref *content.Reference, key string) {
		if len(keysOf(there.Typed)) > 0 {
			r.findf(o, useLine(o, ref, key), "%s has no key %q, which it needs", ref.Object.From(o.namespace()), key)
		}
	})
}

// emptyConfig notes what is needed of config without any: it may be that somebody
// fills it in.
func emptyConfig(m *Manifests, r *reporter) {
	neededKeys(m, func(o, there *Object, ref *content.Reference, key string) {
		if len(keysOf(there.Typed)) == 0 {
			r.findf(o, useLine(o, ref, key), "%s has no data in its manifest, and it needs key %q of it", ref.Object.From(o.namespace()), key)
		}
	})
}

// neededKeys visits the keys that Pods need, of config that is among the manifests
// and does not have them.
func neededKeys(m *Manifests, visit func(o, there *Object, ref *content.Reference, key string)) {
	for _, o := range m.Objects {
		template, _ := o.pods()
		if template == nil {
			continue
		}
		uses := workload.UsesOf(o.namespace(), &template.Spec)
		for i := range uses {
			if there := m.configs[uses[i].Object]; there != nil && there.Typed != nil && !m.isFilled(there) {
				for _, key := range lacking(there, uses[i].Keys) {
					visit(o, there, &uses[i], key)
				}
			}
		}
	}
}

// lacking are the keys that are required and that a ConfigMap or Secret does not have.
func lacking(there *Object, keys []content.KeyUse) []string {
	var names []string
	for _, key := range keys {
		if key.Required && !slices.Contains(keysOf(there.Typed), key.Name) {
			names = append(names, key.Name)
		}
	}
	return names
}

// keysOf are the keys of a ConfigMap or Secret.
func keysOf(obj client.Object) []string {
	var keys []string
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		keys = append(sortedKeys(o.Data), sortedKeys(o.BinaryData)...)
	case *corev1.Secret:
		keys = append(sortedKeys(o.Data), sortedKeys(o.StringData)...)
	}
	return keys
}

// unusedConfig finds what no Pod uses, nobody names and nobody can find.
func unusedConfig(m *Manifests, r *reporter) {
	unnamedConfig(m, func(o *Object, reader string) {
		if reader == "" {
			r.findf(o, fields("metadata.name"), "nothing uses it")
		}
	})
}

// possiblyUnused notes what nobody names, and somebody could be reading all the same.
func possiblyUnused(m *Manifests, r *reporter) {
	unnamedConfig(m, func(o *Object, reader string) {
		if reader != "" {
			r.findf(o, fields("metadata.name"), "nothing among the manifests uses it; %s", reader)
		}
	})
}

// unnamedConfig visits what no Pod uses and nothing names, with those who could be
// reading it. Of a namespace in which the manifests run nothing they show too little.
func unnamedConfig(m *Manifests, visit func(o *Object, reader string)) {
	used := m.usedConfig()
	for _, o := range m.Objects {
		ref := o.asConfig()
		if m.configs[ref] == o && !used[ref] && !m.mentions.name(ref) && !isDiscovered(o) && len(m.runs(ref.Namespace)) > 0 {
			visit(o, m.possibleReader(o))
		}
	}
}

func (m *Manifests) usedConfig() map[content.Object]bool {
	used := map[content.Object]bool{}
	for _, o := range m.Objects {
		if template, _ := o.pods(); template != nil {
			for _, ref := range workload.UsesOf(o.namespace(), &template.Spec) {
				used[ref.Object] = true
			}
		}
	}
	tracked(m, func(_ *Object, manifest workload.Manifest) {
		for i := range manifest.Uses {
			used[manifest.Uses[i].Object] = true
		}
	})
	return used
}

func unshared(m *Manifests, r *reporter) {
	tracked(m, func(o *Object, manifest workload.Manifest) {
		for i := range manifest.Extra {
			ref := &manifest.Extra[i]
			there := m.configs[ref.Object]
			if there == nil || ref.Object.Namespace == o.namespace() || content.IsSharedWith(there.Object, o.namespace()) {
				continue
			}
			r.findf(o, useLine(o, ref, ""), "%s is not shared with namespace %s", ref.Object.From(o.namespace()), o.namespace())
			r.mendf("Annotate it with %s: %s; it stands in %s:%d.", vocabulary.SharedWith.Native, o.namespace(), there.File, there.Line)
		}
	})
}

func ignoredInVain(m *Manifests, r *reporter) {
	tracked(m, func(o *Object, manifest workload.Manifest) {
		for _, ignored := range manifest.Ignored {
			if slices.ContainsFunc(manifest.Uses, func(used content.Reference) bool { return used.Object == ignored.Object }) {
				continue
			}
			key := vocabulary.IgnoredConfigMaps
			if ignored.Object.Kind == content.Secret {
				key = vocabulary.IgnoredSecrets
			}
			r.findf(o, o.keyed(key), "it does not use %s, which it ignores", ignored.Object.From(o.namespace()))
		}
	})
}

func nothingToFollow(m *Manifests, r *reporter) {
	tracked(m, func(o *Object, manifest workload.Manifest) {
		if len(manifest.Uses) == 0 {
			r.findf(o, annotation(manifest.Dialect), "it uses no config that could change")
		}
	})
}
