package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func configRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW101", Level: report.Error, Title: "An annotation about config is invalid",
			Why:    "The config ring ignores an invalid annotation, and reports it on the workload.",
			Action: "Correct the value, or remove the annotation.",
		}, configAnnotations},
		{report.Rule{
			Code: "SPW102", Level: report.Warning, Title: "Annotations about config on a workload whose config is not tracked",
			Why:    "They have an effect only where " + vocabulary.ConfigTracked.Native + " is \"true\", or a policy with track: true selects the workload.",
			Action: "Set " + vocabulary.ConfigTracked.Native + " to \"true\", or remove them.",
		}, untracked},
		{report.Rule{
			Code: "SPW103", Level: report.Note, Title: "Config that a workload needs is not among the manifests",
			Why:    "It may exist in the cluster already, or come from another source. Until it exists the workload waits.",
			Action: "Add it, or make sure that it exists before the workload.",
		}, absentConfig},
		{report.Rule{
			Code: "SPW104", Level: report.Error, Title: "A workload needs a key that its ConfigMap or Secret does not have",
			Why:    "Its Pods cannot start, and no change of config rolls it until the key exists. Objects that a controller fills in are left out, as far as their type, labels or annotations show it.",
			Action: "Add the key, fix its name, or mark the reference as optional.",
		}, absentKeys},
		{report.Rule{
			Code: "SPW105", Level: report.Warning, Title: "A ConfigMap or Secret that nothing uses",
			Why:    "No Pod refers to it, no other manifest names it in a field, an argument or an annotation, and it has neither a type nor a label by which programs find it. A change of it rolls nothing.",
			Action: "Delete it, or name it where it is read: " + vocabulary.ExtraConfigMaps.Native + ", " + vocabulary.ExtraSecrets.Native + ".",
		}, unusedConfig},
		{report.Rule{
			Code: "SPW106", Level: report.Warning, Title: "Config of another namespace that is not shared",
			Why:    "Config of another namespace is used only if it is shared by an annotation of its own, or if the manager runs with --allow-cross-namespace; until then the entry is ignored.",
			Action: "Annotate it with " + vocabulary.SharedWith.Native + " and the namespace of the workload.",
		}, unshared},
		{report.Rule{
			Code: "SPW107", Level: report.Warning, Title: "A workload ignores config that it does not use",
			Why:    "The annotation has no effect; its name may be misspelled.",
			Action: "Fix the name, or remove it.",
		}, ignoredInVain},
		{report.Rule{
			Code: "SPW108", Level: report.Warning, Title: "A workload tracks config and uses none",
			Why:    "Nothing will ever roll it.",
			Action: "Name what its application reads through the API as extra config, or remove the annotation.",
		}, nothingToFollow},
		{report.Rule{
			Code: "SPW109", Level: report.Note, Title: "A workload needs a key of a ConfigMap or Secret without data",
			Why:    "Its Pods cannot start until the key is filled in, by an operator, a user or a program.",
			Action: "Make sure that it is filled in, or add the key.",
		}, emptyConfig},
		{report.Rule{
			Code: "SPW110", Level: report.Note, Title: "A ConfigMap or Secret that nothing names, and that a program may be reading",
			Why:    "A workload in its namespace is permitted to read all config there, or it is shared with other namespaces, or the namespace belongs to Kubernetes. The manifests do not show whether it is used.",
			Action: "Delete it if nothing uses it.",
		}, possiblyUnused},
	}
}

func configAnnotations(m *manifest.Manifests, r *reporter) {
	policies := setIn(m)
	for _, o := range m.Objects {
		if !o.CanTrack() {
			continue
		}
		for _, p := range readBy(m, policies, o).Problems {
			r.findf(o, manifest.Annotation(p.Annotation), "%s", p)
		}
	}
}

func untracked(m *manifest.Manifests, r *reporter) {
	policies := setIn(m)
	for _, o := range m.Objects {
		if !o.CanTrack() || readBy(m, policies, o).Tracked {
			continue
		}
		for _, key := range needTracking() {
			if _, name, ok := key.Lookup(o.Object.GetAnnotations()); ok {
				r.findf(o, manifest.Annotation(name), "%s has no effect: config is not tracked", name)
			}
		}
	}
}

// needTracking are keys that are of use only on workloads whose config is followed.
func needTracking() []vocabulary.Key {
	return []vocabulary.Key{
		vocabulary.ExtraConfigMaps, vocabulary.ExtraSecrets, vocabulary.IgnoredConfigMaps, vocabulary.IgnoredSecrets,
		vocabulary.ImagePullSecrets, vocabulary.CoalesceWindow, vocabulary.CollectFor, vocabulary.Priority, vocabulary.Paused, vocabulary.PinConfig,
	}
}

// references are the fields in which a Pod names a ConfigMap or a Secret.
var references = map[content.Kind][]string{
	content.ConfigMap: {"configMap", "configMapRef", "configMapKeyRef"},
	content.Secret:    {"secret", "secretRef", "secretKeyRef", "imagePullSecrets"},
}

// absentConfig notes what a Pod cannot start without, and what an annotation names.
func absentConfig(m *manifest.Manifests, r *reporter) {
	tracked(m, func(o *manifest.Object, w workload.Manifest) {
		for i := range w.Uses {
			ref := &w.Uses[i]
			if (ref.Required || ref.Extra) && !m.IsThere(ref.Object) {
				r.findf(o, useLine(o, ref, ""), "%s is not among the manifests", ref.Object.From(o.Namespace()))
			}
		}
	})
}

// absentKeys finds keys that are needed and missing, beside others that exist.
func absentKeys(m *manifest.Manifests, r *reporter) {
	neededKeys(m, func(o, there *manifest.Object, ref *content.Reference, key string) {
		if len(keysOf(there.Typed)) > 0 {
			r.findf(o, useLine(o, ref, key), "%s has no key %q, which is needed", ref.Object.From(o.Namespace()), key)
		}
	})
}

// emptyConfig notes keys that are needed of config without data, which may be filled in
// later.
func emptyConfig(m *manifest.Manifests, r *reporter) {
	neededKeys(m, func(o, there *manifest.Object, ref *content.Reference, key string) {
		if len(keysOf(there.Typed)) == 0 {
			r.findf(o, useLine(o, ref, key), "%s has no data in its manifest, and key %q of it is needed", ref.Object.From(o.Namespace()), key)
		}
	})
}

// neededKeys visits the keys that Pods need, of config that is among the manifests
// and does not have them.
func neededKeys(m *manifest.Manifests, visit func(o, there *manifest.Object, ref *content.Reference, key string)) {
	for _, o := range m.Objects {
		template, _ := o.Pods()
		if template == nil {
			continue
		}
		uses := workload.UsesOf(o.Namespace(), &template.Spec)
		for i := range uses {
			if there := m.Configs[uses[i].Object]; there != nil && there.Typed != nil && !m.IsFilled(there) {
				for _, key := range lacking(there, uses[i].Keys) {
					visit(o, there, &uses[i], key)
				}
			}
		}
	}
}

// lacking are the keys that are required and that a ConfigMap or Secret does not have.
func lacking(there *manifest.Object, keys []content.KeyUse) []string {
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
		keys = append(manifest.SortedKeys(o.Data), manifest.SortedKeys(o.BinaryData)...)
	case *corev1.Secret:
		keys = append(manifest.SortedKeys(o.Data), manifest.SortedKeys(o.StringData)...)
	}
	return keys
}

// unusedConfig finds config that no Pod uses, nothing names and no program can find.
func unusedConfig(m *manifest.Manifests, r *reporter) {
	unnamedConfig(m, func(o *manifest.Object, reader string) {
		if reader == "" {
			r.findf(o, manifest.Fields("metadata.name"), "nothing uses it")
		}
	})
}

// possiblyUnused notes config that nothing names, and that a program could be reading.
func possiblyUnused(m *manifest.Manifests, r *reporter) {
	unnamedConfig(m, func(o *manifest.Object, reader string) {
		if reader != "" {
			r.findf(o, manifest.Fields("metadata.name"), "nothing among the manifests uses it; %s", reader)
		}
	})
}

// unnamedConfig visits what no Pod uses and nothing names, with those who could be
// reading it. Of a namespace in which the manifests run nothing they show too little.
func unnamedConfig(m *manifest.Manifests, visit func(o *manifest.Object, reader string)) {
	used := usedConfig(m)
	for _, o := range m.Objects {
		ref := o.AsConfig()
		if m.Configs[ref] == o && !used[ref] && !m.Mentions.Name(ref) && !manifest.IsDiscovered(o) && len(m.Runs(ref.Namespace)) > 0 {
			visit(o, m.PossibleReader(o))
		}
	}
}

func usedConfig(m *manifest.Manifests) map[content.Object]bool {
	used := map[content.Object]bool{}
	for _, o := range m.Objects {
		if template, _ := o.Pods(); template != nil {
			for _, ref := range workload.UsesOf(o.Namespace(), &template.Spec) {
				used[ref.Object] = true
			}
		}
	}
	tracked(m, func(_ *manifest.Object, w workload.Manifest) {
		for i := range w.Uses {
			used[w.Uses[i].Object] = true
		}
	})
	return used
}

func unshared(m *manifest.Manifests, r *reporter) {
	tracked(m, func(o *manifest.Object, w workload.Manifest) {
		for i := range w.Extra {
			ref := &w.Extra[i]
			there := m.Configs[ref.Object]
			if there == nil || ref.Object.Namespace == o.Namespace() || content.IsSharedWith(there.Object, o.Namespace()) {
				continue
			}
			r.findf(o, useLine(o, ref, ""), "%s is not shared with namespace %s", ref.Object.From(o.Namespace()), o.Namespace())
			r.actionf("Annotate it with %s: %s; it stands in %s:%d.", vocabulary.SharedWith.Native, o.Namespace(), there.File, there.Line)
		}
	})
}

// useLine is where a workload refers to an object, or to a key of it: in its
// template, or by an annotation.
func useLine(o *manifest.Object, ref *content.Reference, key string) []string {
	if !ref.Extra {
		_, path := o.Pods()
		return o.Locate(path, func(parent []string, value map[string]any) bool {
			name, _ := value["name"].(string)
			if secret, ok := value["secretName"].(string); ok {
				name = secret
			}
			named := slices.ContainsFunc(references[ref.Object.Kind], func(field string) bool { return slices.Contains(parent[len(path):], field) })
			return named && name == ref.Object.Name && (key == "" || value["key"] == nil || value["key"] == key)
		})
	}
	if ref.Object.Kind == content.Secret {
		return o.Keyed(vocabulary.ExtraSecrets)
	}
	return o.Keyed(vocabulary.ExtraConfigMaps)
}

func ignoredInVain(m *manifest.Manifests, r *reporter) {
	tracked(m, func(o *manifest.Object, w workload.Manifest) {
		for _, ignored := range w.Ignored {
			if slices.ContainsFunc(w.Uses, func(used content.Reference) bool { return used.Object == ignored.Object }) {
				continue
			}
			key := vocabulary.IgnoredConfigMaps
			if ignored.Object.Kind == content.Secret {
				key = vocabulary.IgnoredSecrets
			}
			r.findf(o, o.Keyed(key), "it does not use %s, which it ignores", ignored.Object.From(o.Namespace()))
		}
	})
}

func nothingToFollow(m *manifest.Manifests, r *reporter) {
	tracked(m, func(o *manifest.Object, w workload.Manifest) {
		if len(w.Uses) == 0 && w.TrackedBy == "" {
			r.findf(o, manifest.Annotation(w.Dialect), "it uses no config that could change")
		}
	})
}

// tracked visits the workloads whose config is followed.
func tracked(m *manifest.Manifests, visit func(*manifest.Object, workload.Manifest)) {
	policies := setIn(m)
	for _, o := range m.Objects {
		if !o.CanTrack() {
			continue
		}
		if w := readBy(m, policies, o); w.Tracked {
			visit(o, w)
		}
	}
}

// readBy reads a workload, which a policy may track if it does not say whether it is tracked.
func readBy(m *manifest.Manifests, policies policy.Set, o *manifest.Object) workload.Manifest {
	if read := readNatively(policies, o); read.Dialect != "" || !m.Reloads(o) {
		return read
	}
	return workload.ReloadedManifestOf(o.Typed, m.Reloader)
}

// readNatively is [readBy] without annotations of Reloader.
func readNatively(policies policy.Set, o *manifest.Object) workload.Manifest {
	_, _, says := vocabulary.ConfigTracked.Lookup(o.Object.GetAnnotations())
	if p := policies.Tracking(o.Typed); p != nil && !says {
		return workload.TrackedManifestOf(o.Typed, p.String())
	}
	return workload.ManifestOf(o.Typed)
}
