package workload

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
)

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		check       func(Settings) bool
		problems    int
	}{
		"tracked by wave's name": {
			nil, func(s Settings) bool {
				return s.Tracked && s.Dialect == "wave.pusher.com/update-on-config-change"
			}, 0,
		},
		"extra config": {
			map[string]string{"wave.pusher.com/extra-configmaps": "a,other/b", "wave.pusher.com/extra-secrets": "s"},
			func(s Settings) bool {
				return len(s.Extra) == 3 && s.Extra[1].Object == content.Object{Kind: content.ConfigMap, Namespace: "other", Name: "b"} && !s.Extra[1].Required
			}, 0,
		},
		"malformed extra entries are named and the others count": {
			map[string]string{"wave.pusher.com/extra-configmaps": "a/b/c,,Bad Name, good"},
			func(s Settings) bool {
				return len(s.Extra) == 1 && s.Extra[0].Object.Name == "good"
			}, 3,
		},
		"an unclear pause pauses":    {map[string]string{"spillway.dev/pause": "yes"}, func(s Settings) bool { return s.Paused }, 1},
		"a clear pause":              {map[string]string{"spillway.dev/pause": "true"}, func(s Settings) bool { return s.Paused }, 0},
		"no pause":                   {map[string]string{"spillway.dev/pause": "false"}, func(s Settings) bool { return !s.Paused }, 0},
		"a window":                   {map[string]string{"spillway.dev/coalesce-window": "5s"}, func(s Settings) bool { return s.CoalesceWindow.Seconds() == 5 }, 0},
		"an invalid window":          {map[string]string{"spillway.dev/coalesce-window": "soon"}, func(s Settings) bool { return s.CoalesceWindow == nil }, 1},
		"a negative window":          {map[string]string{"spillway.dev/coalesce-window": "-1s"}, func(s Settings) bool { return s.CoalesceWindow == nil }, 1},
		"a priority":                 {map[string]string{"spillway.dev/priority": "-7"}, func(s Settings) bool { return s.Priority == -7 }, 0},
		"an invalid priority":        {map[string]string{"spillway.dev/priority": "high"}, func(s Settings) bool { return s.Priority == 0 }, 1},
		"ignored objects and keys":   {map[string]string{"spillway.dev/ignore-configmaps": "a, b:key"}, func(s Settings) bool { return len(s.Ignored) == 2 && s.Ignored[1].Keys[0].Name == "key" }, 0},
		"an ignored key that cannot": {map[string]string{"spillway.dev/ignore-secrets": "b:!"}, func(s Settings) bool { return len(s.Ignored) == 0 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{"wave.pusher.com/update-on-config-change": "true"}
			maps.Copy(annotations, test.annotations)
			s := settingsOf("shop", annotations)
			if !test.check(s) {
				t.Errorf("settings = %+v", s)
			}
			if len(s.Problems) != test.problems {
				t.Errorf("problems = %v, want %d", s.Problems, test.problems)
			}
		})
	}
}

func TestOnlyTrueTracks(t *testing.T) {
	for value, problems := range map[string]int{"false": 0, "True": 1, "yes": 1, "": 1} {
		s := settingsOf("shop", map[string]string{"wave.pusher.com/update-on-config-change": value})
		if s.Tracked || len(s.Problems) != problems {
			t.Errorf("%q: tracked %v, problems %v", value, s.Tracked, s.Problems)
		}
	}
}

func TestIsTracked(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"no annotation":    {metav1.ObjectMeta{}, false},
		"tracked":          {metav1.ObjectMeta{Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}}, true},
		"tracked by wave":  {metav1.ObjectMeta{Annotations: map[string]string{"wave.pusher.com/update-on-config-change": "true"}}, true},
		"not a boolean":    {metav1.ObjectMeta{Annotations: map[string]string{"spillway.dev/update-on-config-change": "yes"}}, false},
		"is being deleted": {metav1.ObjectMeta{Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}, DeletionTimestamp: &now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: test.meta}
			if got, read := IsTracked(d), Read(d); got != test.want || got != read.Settings.Tracked {
				t.Errorf("tracked: %t, and %t of all settings; want %t", got, read.Settings.Tracked, test.want)
			}
		})
	}
}
