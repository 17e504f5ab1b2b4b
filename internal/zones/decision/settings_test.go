package decision

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/rollout"
)

func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        Settings
	}{
		"nothing asked": {nil, Settings{}},
		"rollout-operator's names": {
			map[string]string{"rollout-max-unavailable": " 2 ", "grafana.com/rollout-paused": "true"},
			Settings{MaxUnavailable: rollout.Number(2), Paused: true},
		},
		"our own names, which win": {
			map[string]string{
				"rollout-max-unavailable": "2", "spillway.dev/rollout-max-unavailable": "25%",
				"grafana.com/rollout-paused": "true", "spillway.dev/rollout-paused": "false", "spillway.dev/zone-order": "3",
			},
			Settings{MaxUnavailable: rollout.Percentage(25), Order: new(3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, SettingsOf("a", test.annotations)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesInAnnotationsNameTheAction(t *testing.T) {
	for annotation, values := range map[string][]string{
		"rollout-max-unavailable":    {"", "0", "-1", "two", "0%", "101%", "1.5", "%", "99999999999"},
		"grafana.com/rollout-paused": {"", "True", "yes"},
		"spillway.dev/zone-order":    {"", "first", "1.5"},
	} {
		for _, value := range values {
			problems := SettingsOf("ingester-zone-a", map[string]string{annotation: value}).Problems
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "StatefulSet ingester-zone-a: annotation "+annotation+": ") ||
				!strings.Contains(problems[0].String(), "must be") {
				t.Errorf("%s=%q: %v", annotation, value, problems)
			}
		}
	}
}

func TestMaxUnavailable(t *testing.T) {
	annotated := &Set{Settings: Settings{MaxUnavailable: rollout.Number(2)}}
	for name, test := range map[string]struct {
		spec *intstr.IntOrString
		set  *Set
		want rollout.Limit
	}{
		"one by default":            {nil, &Set{}, rollout.Number(1)},
		"the annotation's":          {nil, annotated, rollout.Number(2)},
		"the group's wins":          {new(intstr.FromString("50%")), annotated, rollout.Percentage(50)},
		"the group's, as a number":  {new(intstr.FromInt32(3)), annotated, rollout.Number(3)},
		"a budget that allows less": {new(intstr.FromString("50%")), &Set{Replicas: 10, Bound: budget.Bound{MaxUnavailable: 2}}, rollout.Number(2)},
		"a budget that allows more": {new(intstr.FromString("50%")), &Set{Replicas: 2, Bound: budget.Bound{MaxUnavailable: 2}}, rollout.Percentage(50)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := maxUnavailable(&v1alpha1.RolloutGroupSpec{MaxUnavailable: test.spec}, test.set); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAStrategyThatCannotBeHeld(t *testing.T) {
	o := group(zoneOf("a", "v1", func(s *Set) { s.Strategy = "Recreate" }))
	p := Decide(*o)
	if len(p.Problems) != 1 || !strings.Contains(p.Problems[0].String(), "use OnDelete or RollingUpdate") || p.Permits || len(p.Writes) > 0 {
		t.Errorf("%+v", p.Problems)
	}
}

// A percentage of a StatefulSet is what its controller makes of it.
func TestUnavailableAsTheControllerUnderstandsIt(t *testing.T) {
	for value, want := range map[intstr.IntOrString]int{
		intstr.FromInt32(1): 1, intstr.FromInt32(12): 12, intstr.FromInt32(0): 1,
		intstr.FromString("34%"): 3, intstr.FromString("100%"): 10, intstr.FromString("1%"): 1, intstr.FromString("0%"): 1,
	} {
		rolling := &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &value}
		if got := unavailableOf(rolling, 10); got != want {
			t.Errorf("%s: %d, want %d", value.String(), got, want)
		}
	}
	if got := unavailableOf(&appsv1.RollingUpdateStatefulSetStrategy{}, 10); got != 1 {
		t.Errorf("not set: %d", got)
	}
}

// A Pod terminates first, and then starts: the deadline leaves time for both.
func TestDeadline(t *testing.T) {
	for name, test := range map[string]struct {
		observed *Observed
		want     time.Duration
	}{
		"by default":               {group(zoneOf("a", "v1")), 10 * time.Minute},
		"with a long grace period": {group(zoneOf("a", "v1"), zoneOf("b", "v1", func(s *Set) { s.Grace = 20 * time.Minute })), 29*time.Minute + 30*time.Second},
		"as the group says": {group(zoneOf("a", "v1", func(s *Set) { s.Grace = 20 * time.Minute })).with(func(g *v1alpha1.RolloutGroupSpec) {
			g.ProgressDeadlineSeconds = new(int32(60))
		}), time.Minute},
	} {
		if got := test.observed.deadline(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
