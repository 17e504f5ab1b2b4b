package simulate

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

const (
	// repeats is how often a state may come back, until it is said to come back for ever.
	// With a timeout a plan may still complete or fail after that.
	repeats, repeatsToTimeout = 2, 60
)

// repetition knows the states in which nothing was due but another attempt.
type repetition struct{ seen map[uint64]int }

// isRepeated is true once the same state has come back: a plan of an Instance or a
// downscale that was refused is tried again, nothing else has happened or is due, and so
// nothing else ever will be.
func (s *simulation) isRepeated() bool {
	if s.repetition.seen == nil {
		s.repetition.seen = map[uint64]int{}
	}
	state, ok := s.state()
	if !ok {
		return false
	}
	s.repetition.seen[state]++
	limit := repeats
	if s.hasTimeout() {
		limit = repeatsToTimeout
	}
	return s.repetition.seen[state] > limit
}

// state is what was changed besides Instances and RolloutGroups, what these say, and when
// they are looked at again; false if anything else is due.
func (s *simulation) state() (state uint64, ok bool) {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, s.Changes)
	var due []string
	for e, at := range s.Due {
		if r, isRing := s.Actors[e.Actor].(*ring); !isRing || r.repeats == nil || !r.repeats() {
			return 0, false
		}
		due = append(due, e.Key.String()+" "+at.Sub(s.Now).String())
	}
	slices.Sort(due)
	_, _ = fmt.Fprintln(h, due)
	for _, obj := range slices.Concat(s.Store.Objects(&v1beta1.Instance{}, ""), s.Store.Objects(&v1alpha1.RolloutGroup{}, "")) {
		_, _ = fmt.Fprintln(h, client.ObjectKeyFromObject(obj), timeless(obj))
	}
	return h.Sum64(), len(due) > 0
}

// timeless is an object without what differs from one try to the next: times, and how
// often it was tried.
func timeless(obj client.Object) string {
	raw, err := json.Marshal(obj)
	if err != nil {
		return ""
	}
	var content any
	if json.Unmarshal(raw, &content) != nil {
		return ""
	}
	text := &strings.Builder{}
	writeSaying(text, content, []string{"attempts", "resourceVersion", "managedFields"}, func(value string) string {
		return strings.Map(withoutDigits, value) // messages name times
	})
	return text.String()
}

// writeSaying writes what an object says, without some fields, and each text in it as it is said.
func writeSaying(text *strings.Builder, at any, without []string, said func(value string) string) {
	switch at := at.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(at)) {
			if !slices.Contains(without, key) {
				text.WriteString(key + "{")
				writeSaying(text, at[key], without, said)
			}
		}
		text.WriteString("}")
	case []any:
		for _, item := range at {
			writeSaying(text, item, without, said)
			text.WriteString(",")
		}
	case string:
		text.WriteString(said(at))
	default:
		_, _ = fmt.Fprint(text, at)
	}
}

func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// hasTimeout is true if a plan of any OperatorVersion, or a part of one, has a timeout.
func (s *simulation) hasTimeout() bool {
	for _, obj := range s.Store.Objects(&v1beta1.OperatorVersion{}, "") {
		v, ok := obj.(*v1beta1.OperatorVersion)
		if !ok {
			continue
		}
		for _, plan := range v.Spec.Plans {
			if plan.Timeout != nil || slices.ContainsFunc(plan.Phases, phaseHasTimeout) {
				return true
			}
		}
	}
	return false
}

func phaseHasTimeout(p v1beta1.Phase) bool {
	return p.Timeout != nil || slices.ContainsFunc(p.Steps, func(step v1beta1.Step) bool { return step.Timeout != nil })
}
