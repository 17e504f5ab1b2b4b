package notify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/notify/decision"
)

const why = "zone-b is stopped: gate error-rate was refused"

// tellsStory writes the statuses of a rollout that stops, continues and ends, and waits for each
// message.
func (w *world) tellsStory() {
	w.t.Helper()
	w.group("ingester", "", "Complete") // it had ended before
	w.notifier("channel", "webhook: {}")
	w.says("channel", fine)
	const rollout = "/ingester: rollout 2 "
	about := "RolloutGroup " + w.namespace + rollout
	w.group("ingester", "", "Complete", "Running")
	w.tells(about + "started")
	w.group("ingester", why, "Complete", "Failed")
	w.tells(about+"started", about+"stopped: "+why)
	w.group("ingester", "", "Complete", "Running")
	w.group("ingester", "", "Complete", "Complete")
	w.tells(about+"started", about+"stopped: "+why, about+"ended (Complete)")
	w.once(func() error {
		if s := w.get("channel").Status; s.Pending != 0 || len(s.Queue) != 0 || s.LastDelivery == nil || s.LastError != "" || len(s.Told) != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

// TestStory checks that a rollout gives exactly its messages, and that nothing is written after
// that, whatever else changes.
func TestStory(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	w.group("ingester", "", "Complete")
	w.tellsStory()
	w.rests(func() { w.group("ingester", "", "Complete", "Complete") })
}

// TestFaultNotifier stops the manager at each write of the story, and starts another one: every message arrives, with one
// identity, and in order.
func TestFaultNotifier(t *testing.T) {
	testenv.Story(t, 1+2*3, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.meanwhile = begin(func(i *fault.Injector) func() { return w.manage(i) })
		w.tellsStory()
	})
}

// TestFaultTwoNotifyManagers has two managers that know nothing of each other.
func TestFaultTwoNotifyManagers(t *testing.T) {
	w := newWorld(t)
	w.manage(fault.New())
	w.manage(fault.New())
	w.tellsStory()
}

// TestReceiverIsDownAndBack checks that messages are kept while the receiver is down, also over
// a restart, that the Notifier says why, without the address, and that they arrive in order.
func TestReceiverIsDownAndBack(t *testing.T) {
	w := newWorld(t)
	stop := w.manage(w.requests)
	w.receiver.answers(http.StatusServiceUnavailable)
	w.notifier("channel", "webhook: {}")
	w.says("channel", fine)
	w.group("ingester", "", "Running")
	w.says("channel", "False DeliveryFailed: messages are pending: status 503")
	w.group("ingester", why, "Failed")
	w.once(func() error {
		if s := w.get("channel").Status; s.Pending != 2 || s.Attempts == 0 || s.RetryAt == nil {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	stop()
	w.group("ingester", "", "Complete") // seen by no manager
	w.receiver.answers(http.StatusOK)
	w.manage(fault.New())
	w.barrier.Step(t, decision.Backoff().Most)
	about := "RolloutGroup " + w.namespace + "/ingester: rollout 1 "
	w.tells(about+"started", about+"stopped: "+why, about+"ended (Complete)")
	w.says("channel", fine)
}

// TestSecrets checks what a Notifier says of its Secret, that it says nothing of what is in it,
// and that it reads no other.
func TestSecrets(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	w.notifier("channel", "{webhook: {}, secretRef: {name: other}}")
	w.says("channel", `False DeliveryFailed: messages are pending: read Secret other: secrets "other" not found`)
	w.secret(map[string]string{"address": "https://user:T0SECRET@example.com/"})
	n := w.get("channel")
	n.Spec.SecretRef.Name = "channel"
	if err := w.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.says("channel", "False DeliveryFailed: messages are pending: the Secret channel has no valid address: set its key address to an http or https URL without user and password")
	w.secret(map[string]string{"address": w.receiver.url})
	w.barrier.Step(t, decision.Backoff().Most)
	w.says("channel", fine)
	for _, r := range w.requests.Requests() {
		if r.Resource == "secrets" && (r.Verb != "get" || r.Namespace != w.namespace) {
			t.Errorf("%+v", r)
		}
	}
}

// TestSpecs checks what the API server refuses, and what the condition says of a filter.
func TestSpecs(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	for spec, want := range map[string]string{
		"{}":                                   "set exactly one of webhook, chat and alertmanager",
		"{webhook: {}, alertmanager: {}}":      "set exactly one of webhook, chat and alertmanager",
		"chat: {format: IRC}":                  `supported values: "Slack", "Teams", "Discord"`,
		"{webhook: {}, secretRef: {name: ''}}": "spec.secretRef.name",
	} {
		if err := w.client.Create(t.Context(), w.newNotifier("refused", spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the API server says %v", spec, err)
		}
	}
	w.notifier("channel", `{webhook: {}, filter: "sevrity == 'error'"}`)
	w.says("channel", `False InvalidFilter: spec.filter: "sevrity == 'error'": undeclared reference to 'sevrity'; its variables are the strings ring, phase, reason, severity, object.kind, object.name, object.namespace`)
	w.group("ingester", why, "Failed")
	n := w.get("channel")
	n.Spec.Filter = "severity == 'error'"
	if err := w.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.tells("RolloutGroup " + w.namespace + "/ingester: rollout 1 stopped: " + why)
	w.says("channel", fine)
	n = w.get("channel")
	n.Spec.Suspend = true
	if err := w.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.says("channel", suspended)
}

// TestTenants checks that a Notifier knows nothing of other namespaces: neither of their
// objects, nor of their releases of a policy of the cluster.
func TestTenants(t *testing.T) {
	w := newWorld(t)
	other := newWorldNow(t)
	other.barrier = w.barrier
	w.manage(w.requests, other.namespace)
	w.notifier("channel", "webhook: {}")
	other.notifier("channel", "webhook: {}")
	w.says("channel", fine)
	other.says("channel", fine)
	p := &v1alpha1.ClusterConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: "of-" + w.namespace}}
	p.Spec.Namespaces = []string{w.namespace, other.namespace}
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Delete(context.WithoutCancel(t.Context()), p) })
	release := func(namespace, object string) v1alpha1.ConfigRelease {
		return v1alpha1.ConfigRelease{Object: object, Namespace: namespace, Phase: "Progressing", Updated: "1/5"}
	}
	w.releases(p, release(w.namespace, "Secret db@1111111"), release(other.namespace, "Secret db@2222222"))
	other.group("theirs", "", "Running")
	w.group("ours", "", "Running")
	w.told(other, []string{"RolloutGroup NS/ours: rollout 1 started", "Secret NS/db: content 1111111 started"}, []string{"RolloutGroup NS/theirs: rollout 1 started", "Secret NS/db: content 2222222 started"})
	failed := release(other.namespace, "Secret db@2222222")
	failed.Phase, failed.WaitingFor = "Failed", "deployment/app2 failed"
	w.releases(p, failed)
	w.told(other, []string{"RolloutGroup NS/ours: rollout 1 started", "Secret NS/db: content 1111111 started", "Secret NS/db: content 1111111 ended (Complete)"},
		[]string{"RolloutGroup NS/theirs: rollout 1 started", "Secret NS/db: content 2222222 started", "Secret NS/db: content 2222222 stopped: deployment/app2 failed"})
	failed.RolledBack = 1
	w.releases(p, failed, release(other.namespace, "Secret db@3333333"))
	w.releases(p, release(other.namespace, "Secret db@3333333"))
	w.told(other, []string{"RolloutGroup NS/ours: rollout 1 started", "Secret NS/db: content 1111111 started", "Secret NS/db: content 1111111 ended (Complete)"},
		[]string{"RolloutGroup NS/theirs: rollout 1 started", "Secret NS/db: content 2222222 started", "Secret NS/db: content 2222222 stopped: deployment/app2 failed",
			"Secret NS/db: content 2222222 was returned to what was before: deployment/app2 failed", "Secret NS/db: content 3333333 started"})
}

func (w *world) releases(p *v1alpha1.ClusterConfigPolicy, releases ...v1alpha1.ConfigRelease) {
	w.t.Helper()
	p.Status = v1alpha1.ConfigPolicyStatus{Underway: int32(len(releases)), Releases: releases}
	if err := w.client.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
	w.once(func() error { // before the next status: what no manager has seen is not told
		for _, r := range releases {
			list := &v1alpha1.NotifierList{}
			if err := w.client.List(w.t.Context(), list, client.InNamespace(r.Namespace)); err != nil {
				return err
			}
			_, digest, _ := strings.Cut(r.Object, "@")
			i := slices.IndexFunc(list.Items[0].Status.Told, func(t v1alpha1.ToldRollout) bool { return t.Rollout == digest })
			if i < 0 || (r.RolledBack > 0) != (list.Items[0].Status.Told[i].Phase == v1alpha1.RolloutReturned) {
				return fmt.Errorf("%s has not told of %s", r.Namespace, r.Object)
			}
		}
		return nil
	})
}

// told waits until two namespaces were reported what they are to know, whatever the order of
// objects.
func (w *world) told(other *world, mine, theirs []string) {
	w.t.Helper()
	w.once(func() error {
		for world, want := range map[*world][]string{w: mine, other: theirs} {
			got := slices.Sorted(slices.Values(world.receiver.told()))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], world.namespace, "NS")
			}
			if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				return fmt.Errorf("told %q, want %q", got, want)
			}
		}
		return nil
	})
}

// TestASilentReceiverDelaysNoOther checks that a receiver that takes requests and does not
// answer holds up no Notifier of another namespace.
func TestASilentReceiverDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	silent := newWorldNow(t)
	silent.receiver.silent = make(chan struct{})
	t.Cleanup(func() { close(silent.receiver.silent) })
	w.manage(w.requests, silent.namespace)
	const notifiers = 40
	for i := range notifiers {
		silent.notifier(fmt.Sprint("n", i), "webhook: {}")
	}
	silent.group("ingester", "", "Running")
	testenv.Eventually(t, func(context.Context) error {
		if silent.receiver.tries() < 2 {
			return errors.New("the silent receiver gets nothing")
		}
		return nil
	})
	w.notifier("channel", "webhook: {}")
	w.group("ingester", "", "Running")
	testenv.Eventually(t, func(context.Context) error {
		return w.reported("RolloutGroup " + w.namespace + "/ingester: rollout 1 started")
	})
	if n := silent.receiver.tries(); n > 2 {
		t.Errorf("%d requests of a namespace are under way", n)
	}
}

// TestDeleted checks that an object that is deleted ends what was reported, and that a Notifier that
// is deleted sends nothing.
func TestDeleted(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	w.notifier("channel", "webhook: {}")
	w.group("ingester", "", "Running")
	about := "RolloutGroup " + w.namespace + "/ingester: rollout 1 "
	w.tells(about + "started")
	if err := w.client.Delete(t.Context(), &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "ingester"}}); err != nil {
		t.Fatal(err)
	}
	w.tells(about+"started", about+"ended (Deleted)")
	if err := w.client.Delete(t.Context(), w.get("channel")); err != nil {
		t.Fatal(err)
	}
	w.group("ingester", "", "Running")
	w.notifier("sentinel", "webhook: {}")
	w.says("sentinel", fine)
	w.tells(about+"started", about+"ended (Deleted)", about+"started")
}

// TestEveryPermissionIsUsed runs the story with nothing but the generated role, what rings grant
// to read their kinds, and what a user grants for the Secret.
func TestEveryPermissionIsUsed(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.RulesOf(manifests.Notify)
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	testenv.Grant(t, w.client, w.namespace, user, append(slices.Clone(rules),
		rbacv1.PolicyRule{APIGroups: []string{"spillway.dev"}, Resources: []string{"rolloutgroups"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"channel"}, Verbs: []string{"get"}},
	))
	w.as, w.options.Rings, w.options.Namespaces = testenv.Shared().ConfigAs(user), []string{manager.RingZones}, []string{w.namespace}
	w.manage(w.requests)
	w.tellsStory()
	w.receiver.answers(http.StatusServiceUnavailable)
	w.group("ingester", "", "Complete", "Complete", "Running") // and so there is an Event
	granted := testenv.Permissions(rules)
	delete(granted, "get services.") // of an address in the cluster, which has no DNS here
	testenv.Exactly(t, granted, func() []fault.Request {
		return testenv.Without(w.requests.Requests(), func(r fault.Request) bool { return r.Resource == "secrets" || r.Resource == "rolloutgroups" })
	})
	w.notifier("other", "{webhook: {}, secretRef: {name: other}}")
	w.says("other", "False DeliveryFailed: messages are pending: the manager may not read Secret other; bind a Role that allows to get it to the ServiceAccount of the manager")
}

// TestRingsGrantWhatIsRead checks that a ring may read the kinds that are read for it, so that
// Notifiers need no permission for them.
func TestRingsGrantWhatIsRead(t *testing.T) {
	t.Parallel()
	for ring, kinds := range map[string][]string{
		manager.RingConfig: {"configpolicies.spillway.dev", "clusterconfigpolicies.spillway.dev"}, manager.RingZones: {"rolloutgroups.spillway.dev"},
		manager.RingPlans: {"instances.kudo.dev"}, manager.RingFleet: {"modules.fleet.squaremo.dev", "bootstrapmodules.fleet.squaremo.dev"},
	} {
		rules, err := manifests.RulesOf(ring)
		if err != nil {
			t.Fatal(err)
		}
		granted := testenv.Permissions(rules)
		for _, kind := range kinds {
			if !granted["list "+kind] || !granted["watch "+kind] {
				t.Errorf("ring %s may not read %s: %q", ring, kind, slices.Sorted(maps.Keys(granted)))
			}
		}
	}
}

// TestBackoffIsKept checks that a restart does not send again immediately what is to wait.
func TestBackoffIsKept(t *testing.T) {
	w := newWorld(t)
	stop := w.manage(w.requests)
	w.receiver.answers(http.StatusServiceUnavailable)
	w.notifier("channel", "webhook: {}")
	w.group("ingester", "", "Running")
	for w.barrier.Wait(t); w.get("channel").Status.Attempts < 9; { // the next is in minutes
		w.barrier.Step(t, decision.Backoff().Most)
	}
	stop()
	tried := w.receiver.tries()
	w.manage(fault.New())
	w.barrier.Wait(t)
	if n := w.receiver.tries() - tried; n > 0 {
		t.Errorf("it was sent again %d times after a restart", n)
	}
	w.barrier.Step(t, decision.Backoff().Most)
	if n := w.receiver.tries() - tried; n != 1 {
		t.Errorf("it was sent again %d times after a back-off", n)
	}
}
