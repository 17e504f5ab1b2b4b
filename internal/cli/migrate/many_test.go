package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// rolloutOperator replaces the Pods of one set of a group at a time, as rollout-operator does.
func (w *world) rolloutOperator(ctx context.Context) error {
	sets := &appsv1.StatefulSetList{}
	if err := w.client.List(ctx, sets, client.InNamespace(w.namespace), client.HasLabels{"rollout-group"}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	busy := map[string]bool{}
	for i := range sets.Items { // by name
		set := &sets.Items[i]
		group := set.Labels["rollout-group"]
		pods := &corev1.PodList{}
		if err := w.client.List(ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels)); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if busy[group] = busy[group] || set.Status.ObservedGeneration < set.Generation || set.Status.ReadyReplicas < *set.Spec.Replicas; busy[group] {
			continue
		}
		for j := range pods.Items {
			p := &pods.Items[j]
			if p.DeletionTimestamp == nil && p.Labels[appsv1.StatefulSetRevisionLabel] == set.Status.UpdateRevision {
				continue
			}
			busy[group] = true
			if err := w.client.Delete(ctx, p, client.Preconditions{UID: &p.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete: %w", err)
			}
			break
		}
	}
	return nil
}

// edited is something that a user edits again and again.
type edited struct {
	// restarts are the workloads that an edit restarts.
	restarts []string
	// edit is what the user applies, and applied an error until it is what runs.
	edit    func(n int) string
	applied func(ctx context.Context, n int) error
}

// zone is a set of a group.
func zone(group, name string, n int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s, labels: {rollout-group: %[2]s}}, spec: {replicas: 1, serviceName: store, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s, rollout-group: %[2]s}, annotations: {version: v%[3]d}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}`, name, group, n)
}

// many creates so many of each kind.
func (w *world) many(workloads, groups, instances, modules int) (all []edited) {
	version := func(app string) func(ctx context.Context, n int) error {
		return func(ctx context.Context, n int) error { return w.hasVersion(ctx, app, fmt.Sprintf("v%d", n)) }
	}
	for i := range workloads {
		name := fmt.Sprintf("web-%02d", i)
		w.apply(workload(name, waveAnnotation))
		all = append(all, edited{restarts: []string{name}, edit: func(n int) string { return config(name, n) }, applied: func(ctx context.Context, n int) error {
			d := &appsv1.Deployment{}
			err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, d)
			if has := d.Spec.Template.Annotations["wave.pusher.com/config-hash"]; has != waveHash(&corev1.ConfigMap{ObjectMeta: d.ObjectMeta, Data: map[string]string{"a": fmt.Sprint(n)}}) {
				return fmt.Errorf("%s has hash %q: %w", name, has, err)
			}
			return err
		}})
	}
	for i := range groups {
		group := fmt.Sprintf("store-%d", i)
		zones := []string{group + "-a", group + "-b", group + "-c"}
		all = append(all, edited{restarts: zones, edit: func(n int) string {
			return zone(group, zones[0], n) + "\n---\n" + zone(group, zones[1], n) + "\n---\n" + zone(group, zones[2], n)
		}, applied: func(ctx context.Context, n int) error {
			return errors.Join(version(zones[0])(ctx, n), version(zones[1])(ctx, n), version(zones[2])(ctx, n))
		}})
	}
	for i := range instances {
		name := fmt.Sprintf("graph-%d", i)
		all = append(all, edited{edit: func(n int) string { return instance(name, fmt.Sprintf("v%d", n)) }, applied: func(ctx context.Context, n int) error {
			return w.hasLevel(ctx, name, fmt.Sprintf("v%d", n))
		}})
	}
	var names []string
	for i := range modules {
		name := fmt.Sprintf("mod-%d", i)
		names = append(names, name)
		all = append(all, edited{restarts: []string{name}, edit: func(n int) string { return w.module(name, n) }, applied: version(name)})
	}
	for i := range all {
		w.apply(all[i].edit(0))
	}
	w.fleet(names...)
	return all
}

// TestManyChangeOverAndBackWhileEditsGoOn: from four former controllers at the same time, and back. At each instant no Pod was
// restarted that no edit explains, and no two act; each edit ends up applied.
func TestManyChangeOverAndBackWhileEditsGoOn(t *testing.T) {
	w := newWorld(t)
	testenv.InstallKinds(t, w.client, "../../../charts/spillway/generated/plans/kudo*.yaml")
	w.fleeetKinds()
	w.apply(graph)
	all := w.many(50, 5, 5, 3)
	for name, former := range map[string]struct {
		image string
		acts  func(context.Context) error
	}{
		"wave":                    {"quay.io/wave-k8s/wave:v0.9.0", w.wave},
		"rollout-operator":        {"grafana/rollout-operator:v0.30.0", w.rolloutOperator},
		"kudo-controller-manager": {"kudobuilder/controller:v0.19.0", w.kudo},
	} {
		w.apply(formerly(name, former.image))
		w.standIn(name, always(former.acts))
	}
	n := 0
	applied := func(ctx context.Context) error {
		errs := []error{w.rolled(ctx)}
		for i := range all {
			errs = append(errs, all[i].applied(ctx, n))
		}
		return errors.Join(errs...)
	}
	testenv.Eventually(t, applied)
	explained := w.still()
	w.mu.Lock()
	w.explained = explained
	w.mu.Unlock()

	// during lets a user edit each of all again and again while something is done, and waits until each edit is applied.
	during := func(does func()) {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for ended := false; !ended && t.Context().Err() == nil; {
				n++
				for i := range all {
					w.edits(&all[i], n)
				}
				select {
				case <-stop:
					ended = true
				default:
				}
			}
		}()
		does()
		close(stop)
		<-done
		testenv.Eventually(t, applied)
	}
	during(func() {
		w.says(w.spillway(0, "--accept=rolls"), "acts on 50 Deployment", "acts on 15 StatefulSet", "acts on 5 Instance", "spillway install --rings=assemblage,config,fleet,plans,zones")
		w.says(w.spillway(0, "do", "--settle=5s", "--webhooks=false", "--accept=rolls", "--", loopback), "changed over; spillway migrate undo goes back")
	})
	during(func() {})
	during(func() { w.spillway(0, "undo", "--accept=moving") })
	during(func() {})
}

// edits applies the next edit of something, five a second in all.
func (w *world) edits(e *edited, n int) {
	w.mu.Lock()
	for _, app := range e.restarts {
		w.explained[app]++
	}
	w.mu.Unlock()
	if err := w.applies(w.t.Context(), e.edit(n)); err != nil {
		w.sayWrong(err.Error())
	}
	pause(w.t.Context(), 200*time.Millisecond)
}
