package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Settings are what the annotations of a workload ask for.
type Settings struct {
	// Tracked is true if config changes are to roll the workload, and Dialect is
	// the name of the annotation that says so.
	Tracked bool
	Dialect string
	Paused  bool
	// CoalesceWindow is the workload's own, nil for the manager's.
	CoalesceWindow *time.Duration
	Priority       int
	// Extra are references by annotation; they are never required.
	Extra       []Reference
	PullSecrets bool
	// Ignored are objects, or keys of them, that do not count.
	Ignored []Reference
	// Problems are annotations that could not be understood, and are ignored.
	Problems []Problem
}

// Problem is a mistake in an annotation, and how to fix it.
type Problem struct {
	Annotation, Value, Action string
}

// String is the problem as a sentence.
func (p Problem) String() string {
	return fmt.Sprintf("annotation %s: %q %s", p.Annotation, p.Value, p.Action)
}

// settings reads the annotations of a workload in a namespace.
func settings(namespace string, annotations map[string]string) Settings {
	r := settingsReader{namespace: namespace, annotations: annotations}
	r.s.Tracked = r.boolean(vocabulary.ConfigTracked)
	_, r.s.Dialect, _ = vocabulary.ConfigTracked.Lookup(annotations)
	if !r.s.Tracked {
		return r.s
	}
	r.s.Paused = r.pause()
	r.s.PullSecrets = r.boolean(vocabulary.ImagePullSecrets)
	r.s.Priority = r.integer(vocabulary.Priority)
	r.s.CoalesceWindow = r.duration(vocabulary.CoalesceWindow)
	r.s.Extra = slices.Concat(r.extra(vocabulary.ExtraConfigMaps, ConfigMap), r.extra(vocabulary.ExtraSecrets, Secret))
	r.s.Ignored = slices.Concat(r.ignored(vocabulary.IgnoredConfigMaps, ConfigMap), r.ignored(vocabulary.IgnoredSecrets, Secret))
	return r.s
}

// How to fix what could not be understood, and what it means until then.
const (
	mendBoolean  = `has to be "true" or "false"; it is taken as "false"`
	mendPause    = `has to be "true" or "false"; it is taken as "true"`
	mendInteger  = "has to be a whole number such as 10; it is taken as 0"
	mendDuration = `has to be a duration such as "5s"; the manager takes its own`
	mendExtra    = `has to be "name" or "namespace/name"; it is left out`
	mendIgnored  = `has to be "name" or "name:key"; it is left out`
)

type settingsReader struct {
	namespace   string
	annotations map[string]string
	s           Settings
}

func (r *settingsReader) problem(name, value, action string) {
	r.s.Problems = append(r.s.Problems, Problem{Annotation: name, Value: value, Action: action})
}

// boolean is exact, as the predecessor is: only "true" is true.
func (r *settingsReader) boolean(key vocabulary.Key) bool {
	value, name, ok := key.Lookup(r.annotations)
	if ok && value != "true" && value != "false" {
		r.problem(name, value, mendBoolean)
	}
	return value == "true"
}

// pause errs on the safe side: what is not clearly "false" pauses.
func (r *settingsReader) pause() bool {
	value, name, ok := vocabulary.Paused.Lookup(r.annotations)
	if ok && value != "true" && value != "false" {
		r.problem(name, value, mendPause)
	}
	return ok && value != "false"
}

func (r *settingsReader) integer(key vocabulary.Key) int {
	value, name, ok := key.Lookup(r.annotations)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		r.problem(name, value, mendInteger)
	}
	return n
}

func (r *settingsReader) duration(key vocabulary.Key) *time.Duration {
	value, name, ok := key.Lookup(r.annotations)
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(strings.TrimSpace(value))
	if err != nil || d < 0 {
		r.problem(name, value, mendDuration)
		return nil
	}
	return &d
}

// extra reads "name, namespace/name".
func (r *settingsReader) extra(key vocabulary.Key, kind Kind) []Reference {
	return r.list(key, mendExtra, func(entry string) (Reference, bool) {
		namespace, name, found := strings.Cut(entry, "/")
		if !found {
			namespace, name = r.namespace, entry
		}
		ref := Reference{Object: Object{Kind: kind, Namespace: namespace, Name: name}, Extra: true}
		return ref, isNamespace(namespace) && isName(name)
	})
}

// ignored reads "name, name:key".
func (r *settingsReader) ignored(key vocabulary.Key, kind Kind) []Reference {
	return r.list(key, mendIgnored, func(entry string) (Reference, bool) {
		name, field, found := strings.Cut(entry, ":")
		ref := Reference{Object: Object{Kind: kind, Namespace: r.namespace, Name: name}}
		if found {
			ref.Keys = []KeyUse{{Name: field}}
		}
		return ref, isName(name) && (!found || isKey(field))
	})
}

// list reads a comma-separated annotation; bad entries are problems and the
// good ones count.
func (r *settingsReader) list(key vocabulary.Key, action string, parse func(string) (Reference, bool)) []Reference {
	value, name, ok := key.Lookup(r.annotations)
	if !ok || strings.TrimSpace(value) == "" {
		return nil
	}
	var refs []Reference
	for entry := range strings.SplitSeq(value, ",") {
		ref, ok := parse(strings.TrimSpace(entry))
		if !ok {
			r.problem(name, entry, action)
			continue
		}
		ref.spaced = entry != strings.TrimSpace(entry)
		refs = append(refs, ref)
	}
	return refs
}

func isName(s string) bool      { return len(validation.IsDNS1123Subdomain(s)) == 0 }
func isNamespace(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }
func isKey(s string) bool       { return len(validation.IsConfigMapKey(s)) == 0 }

// without leaves out what is ignored.
func without(refs, ignored []Reference) []Reference {
	if len(ignored) == 0 {
		return refs
	}
	var kept []Reference
	for _, ref := range refs {
		if !slices.ContainsFunc(ignored, func(i Reference) bool { return i.Object == ref.Object && i.Whole() }) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// ignoredKeys are the single keys of an object that do not count.
func ignoredKeys(o Object, ignored []Reference) map[string]bool {
	keys := map[string]bool{}
	for _, i := range ignored {
		if i.Object == o && !i.Whole() {
			keys[i.Keys[0].Name] = true
		}
	}
	return keys
}
