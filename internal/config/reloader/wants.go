package reloader

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Workload is what the annotations are read of.
type Workload struct {
	// Kind is that of the workload, such as Deployment.
	Kind string
	// Annotations are its own, Template those of its Pod template.
	Annotations, Template map[string]string
	Pod                   *corev1.PodSpec
}

// Wants are what a workload asks for.
type Wants struct {
	triggers map[content.Kind]trigger
	reads    map[read]bool
	rolled   rolled
	// Delay is for how long from the first change on others are collected, zero for none.
	Delay time.Duration
	// Problems are what has no effect, or another one than it seems to have.
	Problems []Problem
}

// read is an object that a container mounts or reads.
type read struct {
	kind content.Kind
	name string
}

// trigger is what a workload asks for of one kind of object.
type trigger struct {
	// auto rolls for all objects that a container reads, search for those that are matched.
	auto, search bool
	// names and patterns are of those that roll it also if no container reads them.
	names    map[string]bool
	patterns []*regexp.Regexp
	excluded []string
}

// kind has the annotations for one kind of object.
type kind struct {
	of                  content.Kind
	auto, list, exclude string
}

var kinds = []kind{
	{content.ConfigMap, vocabulary.ReloaderAutoConfigMaps, vocabulary.ReloaderListConfigMaps, vocabulary.ReloaderExcludeConfigMap},
	{content.Secret, vocabulary.ReloaderAutoSecrets, vocabulary.ReloaderListSecrets, vocabulary.ReloaderExcludeSecrets},
	{content.SecretProviderClass, vocabulary.ReloaderAutoClasses, vocabulary.ReloaderListClasses, vocabulary.ReloaderExcludeClasses},
}

// Read reads the annotations of a workload.
func (o *Options) Read(w Workload) Wants {
	wants := Wants{triggers: map[content.Kind]trigger{}, reads: readsOf(w.Pod), rolled: o.rolledFor(w)}
	for _, k := range kinds {
		if o.counts(k.of) {
			wants.triggers[k.of] = o.trigger(w, k)
		}
	}
	if period, err := time.ParseDuration(w.Annotations[o.name(vocabulary.ReloaderPausePeriod)]); err == nil && period > 0 && w.Kind == "Deployment" {
		wants.Delay = period
	}
	wants.Problems = o.problems(w)
	return wants
}

// trigger reads the annotations for one kind of object.
func (o *Options) trigger(w Workload, k kind) trigger {
	from := o.source(w, k)
	auto, typed := from[o.name(vocabulary.ReloaderAuto)], from[o.name(k.auto)]
	t := trigger{
		auto:   parseBool(auto) || parseBool(typed) || auto == "" && typed == "" && o.AutoAll,
		search: from[o.name(vocabulary.ReloaderSearch)] == isTrue,
	}
	t.list(from[o.name(k.list)])
	t.excluded = entries(w.Annotations[o.name(k.exclude)])
	return t
}

// list reads a list. An entry that is no regular expression has no effect.
func (t *trigger) list(value string) {
	t.names = map[string]bool{}
	patterns := 0
	for _, entry := range entries(value) {
		if isPlain(entry) {
			if entry != "" { // no object has that name
				t.names[entry] = true
			}
			continue
		}
		if patterns += len(entry); patterns > maxPatterns {
			break
		}
		if expression, err := compile(entry); err == nil {
			t.patterns = append(t.patterns, expression)
		}
	}
}

// isPlain reports whether an entry matches only the name that it is, or nothing.
func isPlain(entry string) bool {
	return !strings.ContainsFunc(entry, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// source are the annotations whose triggers count for a kind of object: those of the workload, or those of its
// Pod template if the workload has no trigger for it.
func (o *Options) source(w Workload, k kind) map[string]string {
	if o.triggers(w.Annotations, k) {
		return w.Annotations
	}
	return w.Template
}

// triggers reports whether annotations have a trigger for a kind of object, whatever its value.
func (o *Options) triggers(annotations map[string]string, k kind) bool {
	return slices.ContainsFunc([]string{k.list, vocabulary.ReloaderAuto, k.auto, vocabulary.ReloaderSearch}, func(of string) bool {
		_, found := annotations[o.name(of)]
		return found
	})
}

func parseBool(value string) bool {
	is, _ := strconv.ParseBool(value)
	return is
}

// These bound what a list may cost: each name of the namespace is compared with its patterns.
const (
	maxEntries  = 200
	maxPatterns = 1 << 10 // bytes
)

// entries are those of a list that is separated by commas, without those that are too many.
func entries(list string) []string {
	if list == "" {
		return nil
	}
	all := strings.SplitN(list, ",", maxEntries+1)
	all = all[:min(len(all), maxEntries)]
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// compile makes an entry of a list a regular expression. The anchors bind more closely than an alternative in it.
func compile(entry string) (*regexp.Regexp, error) {
	return regexp.Compile("^" + entry + "$") //nolint:wrapcheck // the caller says what of
}

// RolledBy reports whether a workload is rolled by changes of an object of its namespace.
func (w *Wants) RolledBy(kind content.Kind, name string, mark Mark) bool {
	t, counts := w.triggers[kind]
	if !counts || mark == Ignored || slices.Contains(t.excluded, name) {
		return false
	}
	if t.names[name] || slices.ContainsFunc(t.patterns, func(r *regexp.Regexp) bool { return r.MatchString(name) }) {
		return true
	}
	return (t.auto || t.search && mark == Matched) && w.reads[read{kind, name}]
}

// MayRoll reports whether some object may roll the workload.
func (w *Wants) MayRoll() bool {
	if w.lists() {
		return true
	}
	for r := range w.reads {
		if t := w.triggers[r.kind]; t.auto || t.search {
			return true
		}
	}
	return false
}

// lists reports whether objects may roll the workload that no container reads.
func (w *Wants) lists() bool {
	for _, t := range w.triggers {
		if len(t.names) > 0 || len(t.patterns) > 0 {
			return true
		}
	}
	return false
}

// readsOf are the objects that some container or init container mounts or reads.
func readsOf(pod *corev1.PodSpec) map[read]bool {
	reads, mounted := map[read]bool{}, map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
		for i := range containers {
			readsEnvironment(&containers[i], reads)
			for _, m := range containers[i].VolumeMounts {
				mounted[m.Name] = true
			}
		}
	}
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; mounted[v.Name] {
			readsVolume(v, reads)
		}
	}
	return reads
}

func readsEnvironment(c *corev1.Container, reads map[read]bool) {
	for i := range c.EnvFrom {
		switch from := &c.EnvFrom[i]; {
		case from.ConfigMapRef != nil:
			reads[read{content.ConfigMap, from.ConfigMapRef.Name}] = true
		case from.SecretRef != nil:
			reads[read{content.Secret, from.SecretRef.Name}] = true
		}
	}
	for i := range c.Env {
		switch from := c.Env[i].ValueFrom; {
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			reads[read{content.ConfigMap, from.ConfigMapKeyRef.Name}] = true
		case from.SecretKeyRef != nil:
			reads[read{content.Secret, from.SecretKeyRef.Name}] = true
		}
	}
}

func readsVolume(v *corev1.Volume, reads map[read]bool) {
	switch {
	case v.ConfigMap != nil:
		reads[read{content.ConfigMap, v.ConfigMap.Name}] = true
	case v.Secret != nil:
		reads[read{content.Secret, v.Secret.SecretName}] = true
	case v.CSI != nil && v.CSI.VolumeAttributes[classAttribute] != "":
		reads[read{content.SecretProviderClass, v.CSI.VolumeAttributes[classAttribute]}] = true
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			switch from := &v.Projected.Sources[i]; {
			case from.ConfigMap != nil:
				reads[read{content.ConfigMap, from.ConfigMap.Name}] = true
			case from.Secret != nil:
				reads[read{content.Secret, from.Secret.Name}] = true
			}
		}
	}
}

// classAttribute is the attribute of a CSI volume that names its SecretProviderClass.
const classAttribute = "secretProviderClass"
