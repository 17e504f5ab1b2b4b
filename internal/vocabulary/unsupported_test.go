package vocabulary_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func TestIgnoredOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		kind, want          string
	}{
		"nothing":                        {nil, map[string]string{"grafana.com/rollout-paused": "true", "app": "x"}, "StatefulSet", ""},
		"a proposal":                     {nil, map[string]string{"grafana.com/rollout-canary": "1"}, "StatefulSet", "grafana.com/rollout-canary"},
		"a label":                        {map[string]string{"rollout-health-check": "x"}, nil, "StatefulSet", "rollout-health-check"},
		"a preparation as an annotation": {nil, map[string]string{"grafana.com/prepare-downscale": "true"}, "StatefulSet", "grafana.com/prepare-downscale"},
		"a preparation as both": {
			map[string]string{"grafana.com/prepare-downscale": "true"}, map[string]string{"grafana.com/prepare-downscale": "true"}, "StatefulSet", "",
		},
		"a phased Deployment":          {nil, map[string]string{"grafana.com/rollout-bypass-until": "x"}, "Deployment", "grafana.com/rollout-bypass-until"},
		"a Deployment prepares no Pod": {nil, map[string]string{"grafana.com/prepare-downscale": "true"}, "Deployment", ""},
	} {
		found := vocabulary.IgnoredOn(test.kind, test.labels, test.annotations)
		if test.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Name != test.want || found[0].Instead == "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
