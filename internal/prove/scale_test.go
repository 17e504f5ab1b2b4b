//go:build bench

package prove_test

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

const storeZone = `
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store-%[1]d-%[2]s, namespace: stores, labels: {rollout-group: store-%[1]d}}
spec:
  replicas: 3
  podManagementPolicy: Parallel
  updateStrategy: {type: OnDelete}
  serviceName: store
  selector: {matchLabels: {app: store-%[1]d-%[2]s}}
  template:
    metadata: {labels: {app: store-%[1]d-%[2]s}}
    spec: {containers: [{name: c, image: "example.com/store:%[3]s"}]}
`

// large is a change of everything in a large directory: of the config of ten teams with ten Deployments each, of ten groups of three
// zones, and of a module on fifty clusters.
func large() (base, change string) {
	both := func(format string, args ...any) {
		base += fmt.Sprintf(format, append(args, "1")...)
		change += fmt.Sprintf(format, append(args, "2")...)
	}
	for i := range 10 {
		team := fmt.Sprintf("team-%d", i)
		both("\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %s}, data: {level: %q}}\n", team)
		base += fmt.Sprintf("\n---\n{apiVersion: spillway.dev/v1alpha1, kind: ConfigPolicy, metadata: {name: careful, namespace: %s}, spec: {stages: [{name: first, workloads: 1, soak: 5m}, {name: rest, maxUnavailable: 3}]}}\n", team)
		for k := range 10 {
			base += fmt.Sprintf(deployment, fmt.Sprintf("web-%d", 10*k+i), team, "settings", 3)
		}
		for _, zone := range []string{"a", "b", "c"} {
			both(storeZone, i, zone)
		}
	}
	for i := range 50 {
		base += fmt.Sprintf("\n---\n{apiVersion: v1, kind: Secret, metadata: {name: c%02d-kubeconfig, namespace: fleet, labels: {spillway.dev/cluster: \"true\", canary: \"%t\"}}, stringData: {value: x}}\n", i, i < 2)
	}
	both("\n---\n{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: app, namespace: fleet}, spec: {selector: {}, strategy: Incremental, " +
		"rollout: {maxUnreadyClusters: 10, stages: [{name: canary, selector: {matchLabels: {canary: \"true\"}}}, {name: rest}]}, " +
		"template: {spec: {sync: {source: {git: {url: \"https://example.com/app\", version: {tag: v%s}}}}}}}}\n")
	return base, change
}

// TestALargeDirectory counts states, and prints what they cost.
func TestALargeDirectory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // both as the command does
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(400 << 20))
	base, change := large()
	o := scenario(t, "zones-order")
	o.Base, o.Change = read(t, base), read(t, change)
	began, before := time.Now(), usage(t)
	r := explore(t, o)
	after := usage(t)
	t.Logf("%d parts of %d kinds, %d units, %d states, %d transitions: %.1f s, %.1f s of CPU, at most %d MB resident", r.Parts, r.Kinds, r.Units, r.States, r.Transitions,
		time.Since(began).Seconds(), float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/1e9, after.Maxrss>>10)
	if r.Units != 240 || r.Parts != 21 || r.Kinds != 3 || len(r.Counterexamples) > 0 {
		t.Errorf("%d units in %d parts of %d kinds, want 240 in 21 of 3: %+v", r.Units, r.Parts, r.Kinds, r.Counterexamples)
	}
	if most := int64(500) << 10; after.Maxrss > most {
		t.Errorf("%d kB are resident, more than %d", after.Maxrss, most)
	}
}

func usage(t *testing.T) (u syscall.Rusage) {
	t.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}
