//go:build upgrade

package upgrade_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// members are the clusters of the fleet. All are the one API server that is their hub as well,
// where each has an Assemblage of its own name; what a cluster does is played by the test.
func members() []string { return []string{"east", "north", "west"} }

// commit is what a change of the Module names.
func commit(value int) string { return fmt.Sprintf("%040x", value+1) }

// module goes to one cluster after the other.
func module(value int) string {
	return fmt.Sprintf(`{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: shop}, spec: {selector: {}, strategy: Incremental,
rollout: {stages: [{name: all, maxUnreadyClusters: 1}]}, template: {spec: {sync: {source: {git: {url: "https://git.example.test/shop", version: {revision: %q}}}}}}}}`, commit(value))
}

// fleet is a world that is the hub of a fleet.
type fleet struct {
	*world

	typed client.Client
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	typed, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	testenv.InstallKinds(t, typed, "../../charts/spillway/generated/assemblage/fleet*.yaml")
	f := fleet{world: newWorld(t), typed: typed}
	for _, name := range members() {
		secret := testenv.KubeconfigSecret(t, f.namespace, name, testenv.Shared())
		secret.Labels = map[string]string{"spillway.dev/cluster": "true"}
		if err := typed.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// answered is how many clusters report that they run a change, once at most this many may, and
// how many are assigned it.
func (f fleet) answered(ctx context.Context, value, atMost int) (ran, assigned int, err error) {
	list := &v1alpha1.AssemblageList{}
	if err := f.typed.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return 0, 0, err
	}
	var waiting []*v1alpha1.Assemblage
	for i := range list.Items {
		a := &list.Items[i]
		switch s := a.Spec.Syncs; {
		case len(s) != 1 || s[0].Source == nil || s[0].Source.Git.Version.Revision != commit(value):
		case a.Status.ObservedGeneration == a.Generation:
			assigned, ran = assigned+1, ran+1
		default:
			assigned, waiting = assigned+1, append(waiting, a)
		}
	}
	for _, a := range waiting[:max(0, min(len(waiting), atMost-ran))] {
		if err := f.typed.Status().Update(ctx, succeeded(a)); err != nil {
			return ran, assigned, err
		}
		ran++
	}
	return ran, assigned, nil
}

// succeeded is an Assemblage as its cluster reports it, once it runs what it is assigned.
func succeeded(a *v1alpha1.Assemblage) *v1alpha1.Assemblage {
	now, s := metav1.NowMicro(), a.Spec.Syncs[0]
	a.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation, Syncs: []v1alpha1.SyncStatus{{
		Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, ObservedGeneration: a.Generation,
		State: v1alpha1.StateSucceeded, LastTransitionTime: &now, LastSucceededRevision: s.Revision,
	}}}
	return a
}

// underWay waits until one cluster runs a change, and the next one is assigned it.
func (f fleet) underWay(value int) {
	f.t.Helper()
	testenv.Eventually(f.t, func(ctx context.Context) error {
		ran, assigned, err := f.answered(ctx, value, 1)
		if err == nil && (ran != 1 || assigned != 2) {
			err = fmt.Errorf("of change %d, %d clusters run and %d are assigned it", value, ran, assigned)
		}
		return err
	})
}

// settled waits until all clusters run a change, to which each was assigned once.
func (f fleet) settled(value int) {
	f.t.Helper()
	all := len(members())
	testenv.Eventually(f.t, func(ctx context.Context) error {
		ran, assigned, err := f.answered(ctx, value, all)
		if err == nil && ran != all {
			err = fmt.Errorf("of change %d, %d clusters run and %d are assigned it", value, ran, assigned)
		}
		if err == nil {
			err = f.is(ctx, module(value), "Complete", "status", "phase")
		}
		return err
	})
	list := &v1alpha1.AssemblageList{}
	if err := f.typed.List(f.t.Context(), list, client.InNamespace(f.namespace)); err != nil {
		f.t.Fatal(err)
	}
	for i := range list.Items {
		if a := &list.Items[i]; a.Generation != int64(value+1) {
			f.t.Errorf("cluster %s was assigned something %d times by change %d", a.Name, a.Generation, value)
		}
	}
}

// The hub of a fleet is upgraded while a Module has reached one cluster of three, and taken
// back in the middle of the next change: no cluster is assigned anything twice.
func TestFleet(t *testing.T) {
	f, old, now := newFleet(t), previous(t), current(t)
	install := func(v version) {
		t.Helper()
		out, code := f.run(v, "install", "-n", f.system, "--image=example.test/spillway:"+strings.ReplaceAll(v.name, " ", "-"),
			"--rings=fleet", "--webhooks=false", "--", "--allow-cluster-addresses=127.0.0.1")
		if code != 0 {
			t.Fatalf("install: %s", out)
		}
	}
	install(old)
	first := f.manage(old)
	f.apply(module(0))
	f.settled(0)

	f.apply(module(1))
	f.underWay(1)
	first.stop()
	install(now)
	second := f.manage(now)
	f.settled(1)

	f.apply(module(2))
	f.underWay(2)
	install(old) // side by side, as in a rolling update
	third := f.manage(old)
	f.says(third, "starting")
	second.stop()
	f.settled(2)
	third.stop()
	if out, code := f.run(now, "uninstall", "-n", f.system); code != 0 {
		t.Errorf("uninstall: %s", out)
	}
}
