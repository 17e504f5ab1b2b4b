package config

import (
	"testing"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
)

// A workload that a record counts and does not name has the state of the cause that counts more than it names, if
// there is one alone.
func TestWhatARecordDoesNotName(t *testing.T) {
	db := content.Object{Kind: content.Secret, Namespace: "n", Name: "db"}
	named, more := v1alpha1.RolloutCause{State: "Failed", Count: 1, Units: []string{"Deployment a"}}, v1alpha1.RolloutCause{State: "Waiting", Count: 3, Units: []string{"Deployment b"}}
	for name, test := range map[string]struct {
		causes []v1alpha1.RolloutCause
		lacks  []content.Object
		target string
		want   string
	}{
		"one cause names too few":       {[]v1alpha1.RolloutCause{named, more}, []content.Object{db}, "now", "Waiting"},
		"all are named":                 {[]v1alpha1.RolloutCause{named}, []content.Object{db}, "now", ""},
		"it may be either":              {[]v1alpha1.RolloutCause{more, more}, []content.Object{db}, "now", ""},
		"it lacks nothing":              {[]v1alpha1.RolloutCause{more}, nil, "now", ""},
		"the content has changed since": {[]v1alpha1.RolloutCause{more}, []content.Object{db}, "before", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			records := map[content.Object]*v1alpha1.ConfigRollout{db: {Rollout: &v1alpha1.RolloutRecord{Target: test.target, Causes: test.causes}}}
			if s := unnamed(records, test.lacks, func(s *state) bool { return s.rollout.Target == "now" }); s != nil {
				got = s.cause.State
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
