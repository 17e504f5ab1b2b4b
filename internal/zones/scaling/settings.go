package scaling

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/lock"
)

// Settings are what the labels and annotations of a StatefulSet ask for.
type Settings struct {
	// Leader is the StatefulSet that is followed, empty for none.
	Leader string
	// OnlyWhenLeaderReady makes going up wait for the leader's Pods.
	OnlyWhenLeaderReady bool
	// MinTime is how long to wait after another zone was scaled down, nil if it is not
	// said.
	MinTime *time.Duration
	// MinTimeIsLabel is true where a label says so, which cannot be edited on its own.
	MinTimeIsLabel bool
	// Force is what counts instead of the leader's or the mirrored replicas.
	Force *int
	// Mirror is the object whose replicas are mirrored, nil for none.
	Mirror *Mirror
	// Delay is how long Pods are prepared before they go, nil for none.
	Delay *Delay
	// Prepares is true if the guards tell Pods before they go.
	Prepares bool
	// LastDownscale is when rollout-operator has scaled down last, zero if it did not.
	LastDownscale time.Time
	// Problems are mistakes that keep the StatefulSet as it is.
	Problems []Problem
}

// follows is true of a StatefulSet that has the replicas of another object.
func (s *Settings) follows() bool { return s.Leader != "" || s.Mirror != nil }

// Mirror is an object that has a scale subresource.
type Mirror struct {
	Kind schema.GroupVersionKind
	Name string
	// WriteBack is true if its status is to say how many there are.
	WriteBack bool
}

// String is the object, as a user knows it.
func (m Mirror) String() string { return m.Kind.Kind + " " + m.Name }

// Delay is a delayed downscale.
type Delay struct {
	For time.Duration
	URL url.URL
}

// Problem is a mistake of a user, and how to fix it.
type Problem struct {
	// Field is the annotation or label, Value what it says.
	Field, Value, Action string
}

// String is the problem as a clause.
func (p Problem) String() string {
	return fmt.Sprintf("annotation %s: invalid value %s: %s", p.Field, message.Quote(p.Value), p.Action)
}

// reader reads settings.
type reader struct {
	labels, annotations map[string]string
	s                   Settings
}

// SettingsOf reads labels and annotations.
func SettingsOf(labels, annotations map[string]string) Settings {
	r := reader{labels: labels, annotations: annotations}
	r.s.Leader = vocabulary.DownscaleLeader.Get(annotations)
	r.s.OnlyWhenLeaderReady = vocabulary.UpscaleOnlyWhenLeaderReady.Get(annotations) == "true"
	r.s.Prepares = vocabulary.PrepareDownscale.Get(labels) == "true"
	r.readMinTime()
	r.readForce()
	r.readMirror()
	r.readDelay()
	r.readLastDownscale()
	return r.s
}

func (r *reader) readMinTime() {
	s := lock.MinTimeOf(r.labels, r.annotations)
	r.s.MinTimeIsLabel = s.IsLabel
	switch {
	case s.Field == "":
	case s.Err != nil || s.Is < 0:
		r.problem(s.Field, s.Value, `must be a duration such as "12h"`)
	default:
		r.s.MinTime = &s.Is
	}
}

// readForce ignores what it does not understand, as rollout-operator does: the
// StatefulSet then follows as if nothing were forced.
func (r *reader) readForce() {
	if n, err := strconv.ParseInt(vocabulary.ForceReplicas.Get(r.annotations), 10, 32); err == nil && n >= 0 {
		force := int(n)
		r.s.Force = &force
	}
}

func (r *reader) readMirror() {
	name, kind := vocabulary.MirrorName.Get(r.annotations), vocabulary.MirrorKind.Get(r.annotations)
	if name == "" || kind == "" {
		return
	}
	value, field, _ := vocabulary.MirrorAPIVersion.Lookup(r.annotations)
	version, err := schema.ParseGroupVersion(value)
	if err != nil {
		r.problem(field, value, `must be a group and version such as "apps/v1"`)
		return
	}
	back, _, said := vocabulary.MirrorWriteBack.Lookup(r.annotations)
	writes, err := strconv.ParseBool(back)
	r.s.Mirror = &Mirror{Kind: version.WithKind(kind), Name: name, WriteBack: !said || err == nil && writes}
}

func (r *reader) readDelay() {
	value, name, _ := vocabulary.DelayedDownscale.Lookup(r.annotations)
	at, atName, _ := vocabulary.DelayedDownscaleURL.Lookup(r.annotations)
	if value == "" || at == "" {
		return
	}
	d, err := model.ParseDuration(value)
	if err != nil {
		r.problem(name, value, `must be a duration such as "30m" or "1d"`)
		return
	}
	u, err := parseURL(at)
	if err != nil {
		r.problem(atName, at, err.Error())
		return
	}
	if d > 0 {
		r.s.Delay = &Delay{For: time.Duration(d), URL: *u}
	}
}

func parseURL(at string) (*url.URL, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New(`must be a URL such as "http://pod:80/path", of which the host is replaced`)
	}
	return u, nil
}

func (r *reader) readLastDownscale() {
	s := lock.NotedDownscale(r.annotations)
	if s.Err != nil {
		r.problem(s.Field, s.Value, `must be a time such as "2026-05-04T12:00:00Z"`)
		return
	}
	r.s.LastDownscale = s.Is
}

func (r *reader) problem(name, value, action string) {
	r.s.Problems = append(r.s.Problems, Problem{Field: name, Value: value, Action: action})
}
