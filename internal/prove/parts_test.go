package prove_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/prove"
)

// piece writes some manifests of a namespace, and their change.
type piece func(r *rand.Rand, namespace string) (base, change string)

const deployment = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: "example.com/%[1]s", envFrom: [{configMapRef: {name: %[3]s}}]}]}
`

const settings = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {level: %s}}
`

// workloads are up to three Deployments on one ConfigMap or one each, with or without a policy.
func workloads(r *rand.Rand, namespace string) (base, change string) {
	shared := r.IntN(2) == 0
	for i := range 1 + r.IntN(3) {
		config := "settings"
		if !shared {
			config = fmt.Sprintf("settings-%d", i)
		}
		if i == 0 || !shared {
			base += fmt.Sprintf(settings, config, namespace, "info")
			change += fmt.Sprintf(settings, config, namespace, "debug")
		}
		base += fmt.Sprintf(deployment, fmt.Sprintf("web-%d", i), namespace, config, 1)
	}
	if r.IntN(2) == 0 {
		base += fmt.Sprintf(`
---
{apiVersion: spillway.dev/v1alpha1, kind: ConfigPolicy, metadata: {name: careful, namespace: %s}, spec: {stages: [{name: first, workloads: 1}, {name: rest, maxUnavailable: %d}]}}
`, namespace, 1+r.IntN(2))
	}
	return base, change
}

// zones is a group of two zones.
func zones(r *rand.Rand, namespace string) (base, change string) {
	replicas, most := 1+r.IntN(2), 1+r.IntN(2)
	for _, image := range []string{"store:1", "store:2"} {
		text := ""
		for _, zone := range []string{"a", "b"} {
			text += fmt.Sprintf(`
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store-%[1]s, namespace: %[2]s, labels: {rollout-group: store}, annotations: {rollout-max-unavailable: "%[5]d"}}
spec:
  replicas: %[4]d
  podManagementPolicy: Parallel
  updateStrategy: {type: OnDelete}
  serviceName: store
  selector: {matchLabels: {app: store-%[1]s}}
  template:
    metadata: {labels: {app: store-%[1]s}}
    spec: {containers: [{name: c, image: "%[3]s"}]}
`, zone, namespace, image, replicas, most)
		}
		base, change = cmp.Or(base, text), text
	}
	return base, change
}

// fleet is a module on up to three clusters.
func fleet(r *rand.Rand, namespace string) (base, change string) {
	for i := range 1 + r.IntN(3) {
		base += fmt.Sprintf(`
---
{apiVersion: v1, kind: Secret, metadata: {name: c%d-kubeconfig, namespace: %s, labels: {spillway.dev/cluster: "true"}}, stringData: {value: x}}
`, i, namespace)
	}
	module := `
---
{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: app, namespace: %s}, spec: {selector: {}, strategy: Incremental, rollout: {maxUnreadyClusters: %d}, template: {spec: {sync: {source: {git: {url: "https://example.com/app", version: {tag: %s}}}}}}}}
`
	most := 1 + r.IntN(2)
	return base + fmt.Sprintf(module, namespace, most, "v1"), fmt.Sprintf(module, namespace, most, "v2")
}

// brokenIn is how many objects break each rule, with those of parts that are alike.
func brokenIn(r *prove.Report) string {
	of := map[string]int{}
	for i := range r.Counterexamples {
		of[r.Counterexamples[i].Rule] += r.Counterexamples[i].Alike
	}
	return fmt.Sprint(of)
}

// TestPartsAreTheWhole explores random worlds of a few parts, some of them alike, apart and with what is equal taken for
// one another, and as a whole, each path for itself. By rules that are too strict, so that there is something to find, both find
// the same. WORLDS is how many.
func TestPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	worlds, err := strconv.Atoi(cmp.Or(os.Getenv("WORLDS"), "6"))
	if err != nil {
		t.Fatal(err)
	}
	apart, broken := 0, 0
	for seed := range worlds {
		r := rand.New(rand.NewPCG(uint64(seed), 45))
		o := scenario(t, "zones-order")
		base, change := &strings.Builder{}, &strings.Builder{}
		pieces := []piece{workloads, zones, fleet}
		twice := r.IntN(len(pieces)) // this one has a double, equal but for its name
		for i, n := range []int{twice, twice, r.IntN(len(pieces))} {
			like := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
			b, c := pieces[n](like, fmt.Sprintf("team-%d", i))
			base.WriteString(b)
			change.WriteString(c)
		}
		o.Base, o.Change = read(t, base.String()), read(t, change.String())
		o = prove.Stricter(o, r.IntN(3))
		parts := explore(t, o)
		o.Exhaustive = true
		began := time.Now()
		whole := explore(t, o)
		t.Logf("world %d: %d parts, %d kinds, %d states; as a whole %d in %v; broken %s", seed, parts.Parts, parts.Kinds, parts.States, whole.States, time.Since(began), brokenIn(whole))
		if got, want := brokenIn(parts), brokenIn(whole); got != want || !slices.Equal(parts.Reach, whole.Reach) {
			t.Errorf("world %d: apart %s is broken, as a whole %s:\n%s\n=> %s", seed, got, want, base, change)
		}
		if parts.Parts > 1 {
			apart++
		}
		if len(whole.Counterexamples) > 0 {
			broken++
		}
	}
	if apart < worlds*9/10 || broken < worlds/2 {
		t.Errorf("of %d worlds only %d have parts, and in %d something is broken", worlds, apart, broken)
	}
}
