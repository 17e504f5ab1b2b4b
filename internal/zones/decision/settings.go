package decision

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	timeToStart         = 570 * time.Second
	defaultHistoryLimit = 10
)

// Settings are what the annotations of a StatefulSet ask for.
type Settings struct {
	// MaxUnavailable is not set if there is no such annotation.
	MaxUnavailable rollout.Limit
	Paused         bool
	// Order is the place among the zones, nil if none is asked for.
	Order *int
	// Problems are annotations that could not be understood.
	Problems []Problem
}

// SettingsOf reads the annotations of a StatefulSet.
func SettingsOf(name string, annotations map[string]string) Settings {
	r := settingsReader{object: "StatefulSet " + name, annotations: annotations}
	r.s.MaxUnavailable = r.limit(vocabulary.RolloutMaxUnavailable)
	r.s.Paused = r.boolean(vocabulary.RolloutPaused)
	r.s.Order = r.integer(vocabulary.ZoneOrder)
	return r.s
}

func (r *settingsReader) boolean(key vocabulary.Key) bool {
	value, name, ok := key.Lookup(r.annotations)
	if ok && value != "true" && value != "false" {
		r.problem(name, value, `must be "true" or "false"`)
	}
	return value == "true"
}

func (r *settingsReader) integer(key vocabulary.Key) *int {
	value, name, ok := key.Lookup(r.annotations)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		r.problem(name, value, "must be a whole number such as 1")
		return nil
	}
	return &n
}

type settingsReader struct {
	object      string
	annotations map[string]string
	s           Settings
}

// maxUnavailable is that of a zone: the group's wins over the annotation's; and a
// disruption budget that allows less wins over both.
func maxUnavailable(spec *v1alpha1.RolloutGroupSpec, set *Set) rollout.Limit {
	limit := wantedUnavailable(spec, set)
	if most := set.Bound.MaxUnavailable; most > 0 && most < limit.Of(set.Replicas) {
		return rollout.Number(most)
	}
	return limit
}

func wantedUnavailable(spec *v1alpha1.RolloutGroupSpec, set *Set) rollout.Limit {
	if limit, err := limitOf(spec.MaxUnavailable); err == nil && limit.Set {
		return limit
	}
	if set.Settings.MaxUnavailable.Set {
		return set.Settings.MaxUnavailable
	}
	return rollout.Number(1)
}

func (r *settingsReader) limit(key vocabulary.Key) rollout.Limit {
	value, name, ok := key.Lookup(r.annotations)
	if !ok {
		return rollout.Limit{}
	}
	limit, err := parseLimit(value)
	if err != nil {
		r.problem(name, value, err.Error())
	}
	return limit
}

func (r *settingsReader) problem(name, value, action string) {
	r.s.Problems = append(r.s.Problems, Problem{Object: r.object, Field: "annotation " + name, Value: value, Action: action})
}

// limitOf reads maxUnavailable of a RolloutGroup; not set is no limit.
func limitOf(value *intstr.IntOrString) (rollout.Limit, error) {
	if value == nil {
		return rollout.Limit{}, nil
	}
	return parseLimit(value.String())
}

// parseLimit reads "2" or "25%".
func parseLimit(value string) (rollout.Limit, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(value), "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || percent && n > 100 {
		return rollout.Limit{}, fmt.Errorf("must be a number of at least 1 such as %q, or a percentage from 1%% to 100%% such as %q", "2", "25%")
	}
	return rollout.Limit{Value: int(n), Percent: percent, Set: true}, nil
}

// deadline is how long a Pod may take to become available after it was replaced: unless
// the group says so, the longest time that one of its Pods has to terminate, and then
// some to start; ten minutes with the grace period that is the default.
func (o *Observed) deadline() time.Duration {
	if d := o.Group.Spec.ProgressDeadlineSeconds; d != nil {
		return seconds(*d)
	}
	grace := corev1.DefaultTerminationGracePeriodSeconds * time.Second
	for i := range o.Sets {
		grace = max(grace, o.Sets[i].Grace)
	}
	return grace + timeToStart
}

// stuckAfter is how long an outdated Pod may be not ready before it counts as stuck.
func stuckAfter(spec *v1alpha1.RolloutGroupSpec) time.Duration {
	if spec.StuckAfterSeconds == nil {
		return health.StuckAfter
	}
	return seconds(*spec.StuckAfterSeconds)
}

// soak is how long a zone must be ready before the next one goes: what the group
// asks for, or a disruption budget, whichever is longer.
func (o *Observed) soak() time.Duration {
	var longest time.Duration
	if o.Group.Spec.Soak != nil {
		longest = max(0, o.Group.Spec.Soak.Duration)
	}
	for i := range o.Sets {
		longest = max(longest, o.Sets[i].Bound.Soak)
	}
	return longest
}

func historyLimit(spec *v1alpha1.RolloutGroupSpec) int {
	if spec.HistoryLimit == nil {
		return defaultHistoryLimit
	}
	return int(*spec.HistoryLimit)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
