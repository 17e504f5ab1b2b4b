package migrate_test

import (
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// reloader rolls a workload for a change of its ConfigMap that it sees, as Reloader does: nothing at its start.
func (w *world) reloader() func(context.Context) error { return w.reloaderIn(w.namespace) }

func (w *world) reloaderIn(namespace string) func(context.Context) error {
	seen := map[string]string{}
	return func(ctx context.Context) error {
		list := &corev1.ConfigMapList{}
		if err := w.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		for i := range list.Items {
			cm := &list.Items[i]
			before, known := seen[cm.Name]
			if seen[cm.Name] = reloaderHash(cm); !known || before == seen[cm.Name] {
				continue
			}
			d := &appsv1.Deployment{}
			d.Namespace, d.Name = namespace, cm.Name
			patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"STAKATER_%s_CONFIGMAP","value":%q}]}]}}}}`, strings.ToUpper(strings.ReplaceAll(cm.Name, "-", "_")), seen[cm.Name])
			if err := w.client.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("patch: %w", err)
			}
		}
		return nil
	}
}

// reloaderHash is what Reloader records of the content that it has rolled a workload for.
func reloaderHash(cm *corev1.ConfigMap) string {
	pairs := make([]string, 0, len(cm.Data))
	for key, value := range cm.Data {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return fmt.Sprintf("%x", sha512.Sum512_256([]byte(strings.Join(pairs, ";"))))
}

// TestFromReloaderAndBack: a workload that Reloader rolled and one that it never rolled keep their Pods, with an annotation that a
// flag renames, and so does a Rollout of Argo, which is restarted for its first change.
func TestFromReloaderAndBack(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"web", "api"} {
		w.apply(config(name, 0) + "\n---\n" + workload(name, "team.example/auto"))
	}
	testenv.InstallRollouts(t, w.client)
	w.apply(`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: shop, annotations: {team.example/auto: "true"}}, spec: {template: {spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: web}}]}]}}}}`)
	w.apply(formerly("reloader", "ghcr.io/stakater/reloader:v1.4.21", "--auto-annotation=team.example/auto", "--log-format=json"))
	w.standIn("reloader", w.reloader)
	w.settled(map[string]int{"web": 1, "api": 1})
	w.rolledBy("api")
	want := w.still()

	w.says(w.spillway(0, "--from=reloader"), "acts on 2 Deployment, 1 Rollout", "--auto-annotation=team.example/auto: carried over",
		"spillway install --rings=config --reloader-annotations -- --auto-annotation=team.example/auto --log-format=json", "Nothing rolls because of the change-over")
	w.spillway(0, "do", "--settle=3s", "--webhooks=false")
	w.settled(want)
	w.restarts(false)
	for _, name := range []string{"web", "api"} {
		want[name]++
		w.apply(config(name, 1000))
		w.settled(want)
	}
	w.restarts(true)
	w.spillway(0, "undo", "--accept=moving")
	w.settled(want)
}

// restarts waits until the Rollout has a record, and was restarted, or not.
func (w *world) restarts(want bool) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		all, err := w.all(ctx, "argoproj.io/v1alpha1", "Rollout")
		if err != nil || all[0].GetAnnotations()["spillway.dev/config-seen"] == "" {
			return fmt.Errorf("nothing is recorded: %w", err)
		}
		if at, is, _ := unstructured.NestedString(all[0].Object, "spec", "restartAt"); is != want {
			return fmt.Errorf("restarted at %q", at)
		}
		return nil
	})
}

// rolledBy changes a ConfigMap until the stand-in of Reloader has rolled its workload: it knows no change from before its start.
func (w *world) rolledBy(name string) {
	w.t.Helper()
	value := 0
	testenv.Eventually(w.t, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, d); err != nil || len(d.Spec.Template.Spec.Containers[0].Env) > 0 {
			return err
		}
		value++
		w.apply(config(name, value))
		return fmt.Errorf("%s is not rolled", name)
	})
}

// TestFromRolloutOperatorAndBack: the webhooks that nothing would answer go and come back, and no Pod is replaced.
func TestFromRolloutOperatorAndBack(t *testing.T) {
	w := newWorld(t)
	want := map[string]int{}
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		want[zone] = 2
		w.apply(fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s, labels: {rollout-group: store}}, spec: {replicas: 2, serviceName: store, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s, rollout-group: store}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}`, zone))
	}
	w.apply(formerly("rollout-operator", "grafana/rollout-operator:v0.30.0", "-kubernetes.namespace="+w.namespace))
	w.apply(`{apiVersion: v1, kind: Service, metadata: {name: rollout-operator}, spec: {selector: {former: rollout-operator}, ports: [{port: 443}]}}`)
	hook := "no-downscale-" + w.namespace
	w.apply(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s}, webhooks: [{name: no-downscale.grafana.com, failurePolicy: Ignore, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 1, namespaceSelector: {matchLabels: {none: such}},
clientConfig: {service: {namespace: %s, name: rollout-operator}}, rules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [statefulsets]}]}]}`, hook, w.namespace))
	w.settled(want)
	hooked := func() error {
		return w.client.Get(context.Background(), client.ObjectKey{Name: hook}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	}
	t.Cleanup(func() {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		c.Name = hook
		_ = w.client.Delete(context.Background(), c)
	})

	w.says(w.spillway(0), "in namespaces "+w.namespace, "acts on 3 StatefulSet", "kubectl delete validatingwebhookconfiguration "+hook, "spillway install --rings=zones --watch-namespaces="+w.namespace)
	w.says(w.spillway(0, "do", "--settle=3s", "--webhooks=false"), "validatingwebhookconfiguration/"+hook+" deleted; the way back creates it again")
	if err := hooked(); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook: %v", err)
	}
	w.settled(want)
	w.spillway(0, "undo")
	if err := hooked(); err != nil {
		t.Errorf("the webhook: %v", err)
	}
	w.settled(want)
}

// TestItGoesBack: whatever is wrong while it watches, the manager is uninstalled and the former controller started again.
func TestItGoesBack(t *testing.T) {
	for name, test := range map[string]struct {
		// idle managers never begin to work.
		idle bool
		// meanwhile happens once the manager is installed.
		meanwhile func(*world) error
		says      string
	}{
		"the manager does not work": {idle: true, says: "the manager did not begin to work within 4s"},
		"the former controller is started again": {
			meanwhile: func(w *world) error { return w.patch("wave", `{"spec":{"replicas":1}}`) },
			says:      "was started again by another client: stop it there",
		},
		"something rolls": {
			meanwhile: func(w *world) error {
				return w.patch("web", `{"spec":{"template":{"metadata":{"annotations":{"wave.pusher.com/config-hash":"other"}}}}}`)
			},
			says: "was rolled though neither its template nor its config was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.idle = test.idle
			w.apply(config("web", 0) + "\n---\n" + workload("web", waveAnnotation) + "\n---\n" + formerly("wave", "quay.io/wave-k8s/wave:v0.9.0"))
			testenv.Eventually(t, func(ctx context.Context) error { return errors.Join(w.wave(ctx), w.hashed(ctx, 1)) })
			w.still()
			done := make(chan struct{})
			go func() {
				defer close(done)
				if test.meanwhile == nil {
					return
				}
				err := testenv.Until(t.Context(), func(context.Context) error {
					w.mu.Lock()
					defer w.mu.Unlock()
					if _, runs := w.acting[manager]; !runs {
						return fmt.Errorf("the manager does not run")
					}
					return nil
				})
				if err == nil {
					err = test.meanwhile(w)
				}
				if err != nil {
					w.sayWrong(err.Error())
				}
			}()
			w.says(w.spillway(1, "do", "--settle=60s", "--timeout=4s", "--webhooks=false"), "going back: ", test.says, "deployment/wave in namespace "+w.namespace+" scaled to 2", "error: nothing was changed over")
			<-done
			list := &appsv1.DeploymentList{}
			if err := w.client.List(t.Context(), list, client.MatchingLabels(manifests.ManagerLabels())); err != nil || len(list.Items) > 0 {
				t.Errorf("%d managers are installed: %v", len(list.Items), err)
			}
			w.says(w.spillway(1, "undo"), "no change-over was made from here")
		})
	}
}

func (w *world) patch(deployment, patch string) error {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = w.namespace, deployment
	if err := w.client.Patch(w.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("patch %s: %w", deployment, err)
	}
	return nil
}

// TestWhatHasToBeDecided: nothing is done until it is, and each point names its object.
func TestWhatHasToBeDecided(t *testing.T) {
	w := newWorld(t)
	w.apply(formerly("wave", "quay.io/wave-k8s/wave", "--strange=x"))
	asked := w.spillway(1, "do", "--webhooks=false")
	at := "deployment/wave in namespace " + w.namespace
	w.says(asked, "flag: "+at+" runs with --strange=x: it is not known", "version: "+at+" has an image that names no version", "unused: "+at+" acts on nothing that was found")
	d := &appsv1.Deployment{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "wave"}, d); err != nil || *d.Spec.Replicas != 2 {
		t.Errorf("the former controller has %d replicas: %v", *d.Spec.Replicas, err)
	}
	w.says(w.spillway(0, "--accept=flag,version,unused"), "1. stop what acts on the objects now")
	w.says(w.spillway(1, "--from=kudo"), "no kudo was found")
	w.says(w.spillway(1, "--from=wawe"), `--from: "wawe" is not known; use wave, reloader`)
	w.says(w.spillway(1, "do", "here"), "give the flags of the manager after --")
}
