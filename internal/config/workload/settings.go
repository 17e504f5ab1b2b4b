package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Settings are what the annotations of a workload ask for.
type Settings struct {
	// Tracked is true if config changes are to roll the workload, and Dialect is
	// the name of the annotation that says so.
	Tracked bool
	Dialect string
	// TrackedBy is the policy that does it, or that annotations of Reloader do; empty if the workload itself says
	// whether it is tracked.
	TrackedBy string
	Paused    bool
	// PausedBy is who paused it, if that was done by a command.
	PausedBy content.Pause
	// CoalesceWindow is the workload's own, nil for the manager's.
	CoalesceWindow *time.Duration
	// CollectFor is how long changes are collected from the first one on, zero if CoalesceWindow says it.
	CollectFor time.Duration
	Priority   int
	// Extra are references by annotation; they are never required.
	Extra       []content.Reference
	PullSecrets bool
	// Pin is true if each revision is to keep the config that it was rolled with.
	Pin bool
	// PinSet is true if the workload itself says whether it is to; otherwise a policy may.
	PinSet bool
	// Unstoppable is true if failures of others do not stop the workload, nor its own
	// failures others.
	Unstoppable bool
	// OnFailure is what happens when the workload fails with a change of its config: as in
	// package content, empty if what it uses says so.
	OnFailure string
	// StuckPods is what happens to a Pod that a StatefulSet waits for in vain: [ReplaceStuckPods]
	// or [KeepStuckPods]; empty if that depends on who rolled it.
	StuckPods string
	// Ignored are objects, or keys of them, that do not count.
	Ignored []content.Reference
	// Problems are invalid annotations, which have no effect.
	Problems []Problem
}

// Problem is an invalid annotation, and how to fix it.
type Problem struct {
	Annotation, Value, Action string
}

// String is the problem as a sentence.
func (p Problem) String() string {
	return fmt.Sprintf("annotation %s: invalid value %s: %s", p.Annotation, message.Quote(p.Value), p.Action)
}

// Slim leaves out of a workload what the ring does not read: who has written it, but for when it was opted in, as
// long as it has no hash; and of one that is not relevant, which a policy may track, what was
// applied last. It is for caches, and changes the object in place.
func Slim(obj client.Object) {
	_, annotation, tracked := vocabulary.ConfigTracked.Lookup(obj.GetAnnotations())
	if _, _, hashed := vocabulary.ConfigHash.Lookup(TemplateOf(obj).Annotations); tracked && !hashed {
		obj.SetManagedFields(kube.Attribution(obj, annotation))
	} else {
		obj.SetManagedFields(nil)
	}
	if annotations := obj.GetAnnotations(); !IsRelevant(obj) && annotations[corev1.LastAppliedConfigAnnotation] != "" {
		annotations = maps.Clone(annotations)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		obj.SetAnnotations(annotations)
	}
}

// IsTracked is true if changes of its config are to roll a workload.
func IsTracked(obj client.Object) bool {
	r := settingsReader{namespace: obj.GetNamespace(), annotations: obj.GetAnnotations()}
	return r.boolean(vocabulary.ConfigTracked) && obj.GetDeletionTimestamp() == nil
}

// settingsOf reads the annotations of a workload in a namespace.
func settingsOf(namespace string, annotations map[string]string) Settings {
	r := settingsReader{namespace: namespace, annotations: annotations}
	r.s.Tracked = r.boolean(vocabulary.ConfigTracked)
	_, r.s.Dialect, _ = vocabulary.ConfigTracked.Lookup(annotations)
	if !r.s.Tracked {
		return r.s
	}
	r.s.Paused, r.s.PausedBy = r.pause(), content.PauseOf(annotations)
	r.s.Unstoppable = r.isFalse(vocabulary.StopOnFailure)
	r.s.OnFailure = r.onFailure()
	r.s.StuckPods = r.stuckPods()
	r.s.PullSecrets = r.boolean(vocabulary.ImagePullSecrets)
	r.s.Pin = r.boolean(vocabulary.PinConfig)
	_, _, r.s.PinSet = vocabulary.PinConfig.Lookup(annotations)
	r.s.Priority = r.integer(vocabulary.Priority)
	r.s.CoalesceWindow = r.duration(vocabulary.CoalesceWindow)
	if collect := r.duration(vocabulary.CollectFor); collect != nil {
		r.s.CollectFor = *collect
	}
	r.s.Extra = slices.Concat(r.extra(vocabulary.ExtraConfigMaps, content.ConfigMap), r.extra(vocabulary.ExtraSecrets, content.Secret))
	r.s.Ignored = slices.Concat(r.ignored(vocabulary.IgnoredConfigMaps, content.ConfigMap), r.ignored(vocabulary.IgnoredSecrets, content.Secret))
	return r.s
}

// bound reports that a Pod template has more references than are followed.
func (s *Settings) bound(uses []content.Reference) {
	if s.Tracked && len(uses) >= content.MostReferences {
		s.Problems = append(s.Problems, Problem{Annotation: s.Dialect, Value: isTrue, Action: MustBeSmall})
	}
}

// isTrue is the only value of an annotation that is true, as in wave.
const isTrue = "true"

// boolean is exact, as in wave: only "true" is true.
func (r *settingsReader) boolean(key vocabulary.Key) bool {
	value, name, ok := key.Lookup(r.annotations)
	if ok && value != isTrue && value != "false" {
		r.problem(name, value, MustBeBoolean)
	}
	return value == isTrue
}

// isFalse is true only if the value is "false".
func (r *settingsReader) isFalse(key vocabulary.Key) bool {
	value, name, ok := key.Lookup(r.annotations)
	if ok && value != isTrue && value != "false" {
		r.problem(name, value, MustBePause)
	}
	return value == "false"
}

// onFailure is "Stop" if it cannot be read, which takes nothing away.
func (r *settingsReader) onFailure() string {
	value, name, ok := vocabulary.OnConfigFailure.Lookup(r.annotations)
	if ok && value != content.OnFailureRollback && value != content.OnFailureStop {
		r.problem(name, value, MustBeOnFailure)
		return content.OnFailureStop
	}
	return value
}

// What happens to a Pod that was never ready, and that a StatefulSet waits for before it
// updates. The names are those of a RolloutGroup.
const (
	ReplaceStuckPods = string(v1alpha1.ReplaceStuckPods)
	KeepStuckPods    = string(v1alpha1.KeepStuckPods)
)

// stuckPods is "Keep" if it cannot be read, which takes nothing away.
func (r *settingsReader) stuckPods() string {
	value, name, ok := vocabulary.StuckPods.Lookup(r.annotations)
	if ok && value != ReplaceStuckPods && value != KeepStuckPods {
		r.problem(name, value, MustBeStuckPods)
		return KeepStuckPods
	}
	return value
}

// pause is true unless the value is "false", which is the safe side.
func (r *settingsReader) pause() bool {
	value, name, ok := vocabulary.Paused.Lookup(r.annotations)
	if ok && value != isTrue && value != "false" {
		r.problem(name, value, MustBePause)
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
		r.problem(name, value, MustBeInteger)
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
		r.problem(name, value, MustBeDuration)
		return nil
	}
	return &d
}

// extra reads "name, namespace/name".
func (r *settingsReader) extra(key vocabulary.Key, kind content.Kind) []content.Reference {
	return r.list(key, kind, MustBeExtra, content.ParseExtra)
}

// ignored reads "name, name:key".
func (r *settingsReader) ignored(key vocabulary.Key, kind content.Kind) []content.Reference {
	return r.list(key, kind, MustBeIgnored, content.ParseIgnored)
}

// list reads a comma-separated annotation; bad entries are problems and the
// good ones count.
func (r *settingsReader) list(key vocabulary.Key, kind content.Kind, action string,
	parse func(kind content.Kind, namespace, entry string) (content.Reference, bool),
) []content.Reference {
	value, name, ok := key.Lookup(r.annotations)
	if !ok || strings.TrimSpace(value) == "" {
		return nil
	}
	var refs []content.Reference
	n := 0
	for entry := range strings.SplitSeq(value, ",") {
		if n++; n > maxEntries {
			r.problem(name, value, MustBeShort)
			break
		}
		ref, ok := parse(kind, r.namespace, entry)
		if !ok {
			r.problem(name, entry, action)
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}

// maxEntries bounds what a list may cost: each entry is an object to be watched.
const maxEntries = 1000

// What the value of an annotation must be, and what is used until it is.
const (
	MustBeSmall     = "must be on a workload with fewer than 2000 references to ConfigMaps and Secrets; ignoring the others"
	MustBeShort     = "must be a list of at most 1000 entries; ignoring the others"
	MustBeBoolean   = `must be "true" or "false"; using "false"`
	MustBePause     = `must be "true" or "false"; using "true"`
	MustBeOnFailure = `must be "Rollback" or "Stop"; using "Stop"`
	MustBeStuckPods = `must be "Replace" or "Keep"; using "Keep"`
	MustBeInteger   = "must be an integer such as 10; using 0"
	MustBeDuration  = `must be a duration such as "5s"; using the default of the manager`
	MustBeExtra     = `must be "name" or "namespace/name"; ignoring it`
	MustBeIgnored   = `must be "name" or "name:key"; ignoring it`
)

type settingsReader struct {
	namespace   string
	annotations map[string]string
	s           Settings
}

func (r *settingsReader) problem(name, value, action string) {
	r.s.Problems = append(r.s.Problems, Problem{Annotation: name, Value: value, Action: action})
}
