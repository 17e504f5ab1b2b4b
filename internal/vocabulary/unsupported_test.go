package vocabulary_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func TestIgnoredOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nothing":                        {nil, map[string]string{"grafana.com/rollout-paused": "true", "app": "x"}, ""},
		"a proposal":                     {nil, map[string]string{"grafana.com/rollout-canary": "1"}, "grafana.com/rollout-canary"},
		"a label":                        {map[string]string{"rollout-health-check": "x"}, nil, "rollout-health-check"},
		"a preparation as an annotation": {nil, map[string]string{"grafana.com/prepare-downscale": "true"}, "grafana.com/prepare-downscale"},
		"a preparation as both": {
			map[string]string{"grafana.com/prepare-downscale": "true"}, map[string]string{"grafana.com/prepare-downscale": "true"}, "",
		},
	} {
		found := vocabulary.IgnoredOn(test.labels, test.annotations)
		if test.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Name != test.want || found[0].Instead == "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
