package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/message"
)

// What one workload asks for is bounded: a list of tens of thousands of names counts with
// its first thousand, a long value is quoted in part, and what fits is followed.
func TestWhatAWorkloadAsksForIsBounded(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	names := make([]string, 30_000)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	w.apply(deployment("many", envFrom(configMapRef("app")), native+"extra-configmaps", strings.Join(names, ",")))
	w.apply(deployment("long", envFrom(configMapRef("app")), native+"priority", strings.Repeat("x", 200<<10)))
	w.apply(deployment("wrong", envFrom(configMapRef("app")), native+"extra-secrets", strings.Repeat("_,", 100<<10)))
	w.saysEventually("many", "must be a list of at most 1000 entries; ignoring the others")
	w.saysEventually("long", "(204800 bytes)")
	w.saysEventually("wrong", "and 991 more")
	env := make([]string, 5000)
	for i := range env {
		env[i] = fmt.Sprintf("{name: E%d, valueFrom: {configMapKeyRef: {name: m%d, key: a, optional: true}}}", i, i)
	}
	w.apply(deployment("large", "containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}], env: ["+strings.Join(env, ",")+"]}]"))
	w.saysEventually("large", "must be on a workload with fewer than 2000 references")
	for _, name := range []string{"many", "long", "wrong", "large"} {
		w.hashed(name, "")
		if n := len(w.condition(name)); n > 2*message.SentenceLength {
			t.Errorf("%s says %d bytes", name, n)
		}
	}
	for name, most := range map[string]int{"many": 1001, "large": 2000} {
		if n := len(w.explain(name).Uses); n > most {
			t.Errorf("%d objects are followed for %s", n, name)
		}
	}
}
