package vocabulary

import "testing"

func TestLookupPrefersTheNativeName(t *testing.T) {
	m := map[string]string{
		"wave.pusher.com/update-on-config-change": "false",
		"spillway.dev/update-on-config-change":    "true",
	}
	value, name, ok := ConfigTracked.Lookup(m)
	if !ok || value != "true" || name != "spillway.dev/update-on-config-change" {
		t.Errorf("Lookup = %q, %q, %v", value, name, ok)
	}
}

func TestLookupUnderstandsWave(t *testing.T) {
	value, name, ok := ConfigTracked.Lookup(map[string]string{"wave.pusher.com/update-on-config-change": "true"})
	if !ok || value != "true" || name != "wave.pusher.com/update-on-config-change" {
		t.Errorf("Lookup = %q, %q, %v", value, name, ok)
	}
	if _, _, ok := ConfigTracked.Lookup(nil); ok {
		t.Error("Lookup found a key in an empty map")
	}
}

func TestAnswersInTheDialectThatWasSpoken(t *testing.T) {
	for spoken, want := range map[string]string{
		"wave.pusher.com/update-on-config-change": "wave.pusher.com/config-hash",
		"spillway.dev/update-on-config-change":    "spillway.dev/config-hash",
		"unheard.of/key":                          "spillway.dev/config-hash",
	} {
		if got := ConfigHash.In(spoken); got != want {
			t.Errorf("In(%q) = %q, want %q", spoken, got, want)
		}
	}
}

func TestTheGroupOfAnAnnotationWins(t *testing.T) {
	label := map[string]string{"rollout-group": "ingester"}
	for want, annotations := range map[string]map[string]string{
		"ingester":      nil,
		"store-gateway": {"rollout-group": "store-gateway"},
		"compactor":     {"rollout-group": "store-gateway", "spillway.dev/rollout-group": "compactor"},
	} {
		if got := GroupOf(label, annotations); got != want {
			t.Errorf("GroupOf = %q, want %q", got, want)
		}
	}
	if got := GroupOf(nil, nil); got != "" {
		t.Errorf("GroupOf nothing = %q", got)
	}
}
