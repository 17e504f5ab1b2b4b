package reloader

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Problem is an annotation that has no effect, or another one than it seems to have, and what to do.
type Problem struct{ Annotation, Value, Action string }

// What is wrong with a value, and what is used until it is corrected.
const (
	mustBeBool     = `must be "true" or "false"; using "false"`
	mustBeDuration = `must be a duration such as "5m"; using none`
	mustBeStrategy = `must be "rollout" or "restart"; ignoring it`
	mustBeKnown    = "no annotation of Reloader 1.4 has this name; correct it or remove it; ignoring it"
	mustBeShort    = "must be a list of at most 200 entries, with 1024 bytes of regular expressions; ignoring the others"
	mustBeOnConfig = "must be on a ConfigMap or Secret; ignoring it"
)

// problems are those of the annotations of a workload and of its Pod template, sorted.
func (o *Options) problems(w Workload) []Problem {
	r := &reviewer{Options: o, workload: w, known: map[string]string{}}
	for _, name := range known {
		r.known[o.name(name)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(w.Annotations)) {
		r.review(name, w.Annotations[name], false)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Template)) {
		r.review(name, w.Template[name], true)
	}
	r.conflicts()
	return r.found
}

// known are all annotations of Reloader.
var known = []string{
	vocabulary.ReloaderAuto, vocabulary.ReloaderAutoConfigMaps, vocabulary.ReloaderAutoSecrets, vocabulary.ReloaderAutoClasses,
	vocabulary.ReloaderListConfigMaps, vocabulary.ReloaderListSecrets, vocabulary.ReloaderListClasses,
	vocabulary.ReloaderSearch, vocabulary.ReloaderMatch, vocabulary.ReloaderIgnore,
	vocabulary.ReloaderExcludeConfigMap, vocabulary.ReloaderExcludeSecrets, vocabulary.ReloaderExcludeClasses,
	vocabulary.ReloaderPausePeriod, vocabulary.ReloaderPausedAt, vocabulary.ReloaderRolloutStrategy, vocabulary.ReloaderLastReloadedFrom,
}

// reviewer finds what is wrong with the annotations of one workload.
type reviewer struct {
	*Options

	workload Workload
	// known has the own name of each annotation by the one that it is read by.
	known map[string]string
	found []Problem
}

func (r *reviewer) add(annotation, value, action string, args ...any) {
	r.found = append(r.found, Problem{annotation, value, fmt.Sprintf(action, args...)})
}

// review reviews one annotation.
func (r *reviewer) review(name, value string, onTemplate bool) {
	of, isKnown := r.known[name]
	if !isKnown {
		r.unknown(name, value)
		return
	}
	switch of {
	case vocabulary.ReloaderAuto, vocabulary.ReloaderAutoConfigMaps, vocabulary.ReloaderAutoSecrets, vocabulary.ReloaderAutoClasses:
		if _, err := strconv.ParseBool(value); err != nil && value != "" {
			r.add(name, value, mustBeBool)
		}
	case vocabulary.ReloaderSearch:
		if value != isTrue && value != "false" {
			r.add(name, value, mustBeBool)
		}
	case vocabulary.ReloaderListConfigMaps, vocabulary.ReloaderListSecrets, vocabulary.ReloaderListClasses:
		r.list(name, value)
	case vocabulary.ReloaderMatch, vocabulary.ReloaderIgnore:
		r.add(name, value, mustBeOnConfig)
	case vocabulary.ReloaderExcludeConfigMap, vocabulary.ReloaderExcludeSecrets, vocabulary.ReloaderExcludeClasses:
		r.exclusion(name, value, onTemplate)
	case vocabulary.ReloaderPausePeriod:
		r.period(name, value, onTemplate)
	case vocabulary.ReloaderRolloutStrategy:
		if value != "rollout" && value != "restart" {
			r.add(name, value, mustBeStrategy)
		}
	}
}

// unknown reports a name of Reloader's that means nothing, or is renamed.
func (r *reviewer) unknown(name, value string) {
	switch {
	case !vocabulary.IsOfReloader(name):
	case r.Names[name] != "":
		r.add(name, value, "the manager reads %s in its place; ignoring it", r.Names[name])
	default:
		r.add(name, value, mustBeKnown)
	}
}

func (r *reviewer) list(name, value string) {
	patterns := 0
	for _, entry := range entries(value) {
		if !isPlain(entry) {
			patterns += len(entry)
		}
	}
	if strings.Count(value, ",") >= maxEntries || patterns > maxPatterns {
		r.add(name, value, mustBeShort)
	}
	for _, entry := range entries(value) {
		if _, err := compile(entry); err != nil {
			r.add(name, entry, "must be a name or a regular expression; ignoring it")
		}
	}
}

func (r *reviewer) exclusion(name, value string, onTemplate bool) {
	switch {
	case onTemplate:
		r.add(name, value, "must be on the %s, not on its Pod template; ignoring it", r.workload.Kind)
	case strings.Count(value, ",") >= maxEntries:
		r.add(name, value, mustBeShort)
	}
}

func (r *reviewer) period(name, value string, onTemplate bool) {
	period, err := time.ParseDuration(value)
	switch {
	case onTemplate || r.workload.Kind != "Deployment":
		r.add(name, value, "must be on a Deployment; ignoring it")
	case err != nil || period < 0:
		r.add(name, value, mustBeDuration)
	}
}

// conflicts reports annotations of which another one takes the effect.
func (r *reviewer) conflicts() {
	a := r.workload.Annotations
	for _, k := range kinds {
		r.listsWhatIsExcluded(k)
		r.hasTwoPlaces(k)
		auto, typed := r.name(vocabulary.ReloaderAuto), r.name(k.auto)
		if value := a[auto]; value != "" && !parseBool(value) && parseBool(a[typed]) && r.counts(k.of) {
			r.add(auto, value, "%s is true, and counts for %s; remove one of the two", typed, plural(k.of))
		}
	}
	search := r.name(vocabulary.ReloaderSearch)
	if a[search] == isTrue && parseBool(a[r.name(vocabulary.ReloaderAuto)]) {
		r.add(search, a[search], "%s is true, and counts; remove one of the two", r.name(vocabulary.ReloaderAuto))
	}
}

// listsWhatIsExcluded reports a name in both lists: it rolls nothing.
func (r *reviewer) listsWhatIsExcluded(k kind) {
	exclude := r.name(k.exclude)
	excluded := entries(r.workload.Annotations[exclude])
	for _, name := range entries(r.source(r.workload, k)[r.name(k.list)]) {
		if name != "" && slices.Contains(excluded, name) {
			r.add(r.name(k.list), name, "%s has it, too, and counts; remove one of the two", exclude)
		}
	}
}

// hasTwoPlaces reports a trigger of the Pod template that does not count, because the workload has one.
func (r *reviewer) hasTwoPlaces(k kind) {
	for _, of := range []string{k.list, k.auto} {
		name := r.name(of)
		value, found := r.workload.Template[name]
		own, says := r.workload.Annotations[name]
		if found && r.triggers(r.workload.Annotations, k) && (!says || own != value) {
			r.add(name, value, "the annotations of the %s count, not those of its Pod template; move it there or remove it", r.workload.Kind)
		}
	}
}

func plural(kind content.Kind) string {
	if kind == content.SecretProviderClass {
		return string(kind) + "es"
	}
	return string(kind) + "s"
}
