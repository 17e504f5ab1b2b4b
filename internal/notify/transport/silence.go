package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/notify/decision"
)

const (
	// SilenceLasts is how long a silence lasts that is not renewed. It is renewed each
	// [RenewEvery].
	SilenceLasts = 3 * RenewEvery
	// stateExpired is the state of a silence that is over.
	stateExpired = "expired"
)

// Unit is a StatefulSet that is down on purpose, and the Notifier that silences the alerts about it.
type Unit struct{ Namespace, Notifier, StatefulSet string }

// author tells the silences of a Notifier from those of others.
func (u *Unit) author() string { return "spillway/" + u.Namespace + "/" + u.Notifier }

// matchers are those of each silence: for alerts about the Pods, and for those about the
// StatefulSet, by the labels of kube-state-metrics. None is for another namespace.
func (u *Unit) matchers() [][]matcher {
	in := matcher{Name: "namespace", Value: u.Namespace, IsEqual: true}
	return [][]matcher{
		{in, {Name: "pod", Value: regexp.QuoteMeta(u.StatefulSet) + "-[0-9]+", IsRegex: true, IsEqual: true}},
		{in, {Name: "statefulset", Value: u.StatefulSet, IsEqual: true}},
	}
}

// matcher is one of a silence.
type matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual bool   `json:"isEqual"`
}

// filter is the matcher as Alertmanager parses it.
func (m *matcher) filter() string {
	operator := "="
	if m.IsRegex {
		operator = "=~"
	}
	return m.Name + operator + strconv.Quote(m.Value)
}

func order(a, b matcher) int { return cmp.Compare(a.filter(), b.filter()) }

// silence is one of Alertmanager's API v2.
type silence struct {
	ID        string    `json:"id,omitempty"`
	Matchers  []matcher `json:"matchers"`
	StartsAt  time.Time `json:"startsAt"`
	EndsAt    time.Time `json:"endsAt"`
	CreatedBy string    `json:"createdBy"`
	Comment   string    `json:"comment"`
	// Status is what Alertmanager adds.
	Status struct {
		State string `json:"state"`
	} `json:"status,omitzero"`
}

// Silence silences the alerts about a unit for [SilenceLasts]. Silences that are under way are
// prolonged, so there is no further one after a restart.
func (t *Target) Silence(ctx context.Context, u *Unit, now time.Time) *decision.Failure {
	for _, matchers := range u.matchers() {
		found, failure := t.silences(ctx, u, matchers)
		if failure != nil {
			return failure
		}
		s := &silence{
			Matchers: matchers, StartsAt: now.UTC(), EndsAt: now.Add(SilenceLasts).UTC(), CreatedBy: u.author(),
			Comment: "StatefulSet " + u.Namespace + "/" + u.StatefulSet + " is updated or scaled on purpose. This is renewed each minute while that lasts.",
		}
		if len(found) > 0 {
			s.ID, s.StartsAt = found[0].ID, found[0].StartsAt
		}
		body, err := encode(s)
		if err != nil {
			return &decision.Failure{Text: err.Error()}
		}
		if _, failure := t.request(ctx, http.MethodPost, t.url.JoinPath("api/v2/silences"), http.Header{}, body); failure != nil {
			return failure
		}
	}
	return nil
}

// EndSilence ends the silences about a unit.
func (t *Target) EndSilence(ctx context.Context, u *Unit) *decision.Failure {
	for _, matchers := range u.matchers() {
		found, failure := t.silences(ctx, u, matchers)
		if failure != nil {
			return failure
		}
		for i := range found {
			if _, failure := t.request(ctx, http.MethodDelete, t.url.JoinPath("api/v2/silence", found[i].ID), http.Header{}, nil); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// silences are those about a unit with these matchers that are not over, the oldest first, so
// that every manager prolongs the same one.
func (t *Target) silences(ctx context.Context, u *Unit, matchers []matcher) ([]silence, *decision.Failure) {
	at, query := t.url.JoinPath("api/v2/silences"), url.Values{}
	for i := range matchers {
		query.Add("filter", matchers[i].filter())
	}
	at.RawQuery = query.Encode()
	said, failure := t.request(ctx, http.MethodGet, at, http.Header{}, nil)
	if failure != nil {
		return nil, failure
	}
	var found []silence
	if err := json.Unmarshal(said, &found); err != nil {
		return nil, &decision.Failure{Text: "the answer is no list of silences"}
	}
	wanted := slices.SortedFunc(slices.Values(matchers), order)
	found = slices.DeleteFunc(found, func(s silence) bool {
		return s.CreatedBy != u.author() || s.Status.State == stateExpired || !slices.Equal(slices.SortedFunc(slices.Values(s.Matchers), order), wanted)
	})
	slices.SortFunc(found, func(a, b silence) int { return cmp.Or(a.StartsAt.Compare(b.StartsAt), strings.Compare(a.ID, b.ID)) })
	return found, nil
}
