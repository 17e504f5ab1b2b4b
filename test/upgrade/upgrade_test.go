//go:build upgrade

package upgrade_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Two versions after each other, and back, installed by the command: the manager of one has
// ended before that of the other begins.
func TestOneAfterTheOther(t *testing.T) {
	w, old, now := newWorld(t), previous(t), current(t)
	install := func(v version) {
		t.Helper()
		out, code := w.run(v, "install", "-n", w.system, "--image=example.test/spillway:"+strings.ReplaceAll(v.name, " ", "-"),
			"--watch-namespaces="+w.namespace, "--webhooks=false", "--package-kinds", "--", "--max-rolling=1")
		if code != 0 {
			t.Fatalf("install: %s", out)
		}
	}
	install(old)
	first := w.manage(old)
	w.create()
	rolls := w.rolls()
	out, code := w.run(now, "check", "--upgrade", "-n", w.system)
	if code != 0 || !strings.Contains(out, "all flags of the manager are still accepted") || !strings.Contains(out, "lint finds no error in ") {
		t.Errorf("check --upgrade, with exit code %d, says: %s", code, out)
	}

	w.change(1)
	w.underWay(1)
	first.stop()
	w.stillUnderWay(1)
	install(now)
	second := w.manage(now)
	w.settled(1)
	rolls = w.rolledOnce(rolls)

	w.change(2)
	w.underWay(2)
	second.stop()
	w.stillUnderWay(2)
	install(old)
	third := w.manage(old)
	w.settled(2)
	w.rolledOnce(rolls)
	third.stop()
	if out, code := w.run(now, "uninstall", "-n", w.system); code != 0 {
		t.Errorf("uninstall: %s", out)
	}
}

// The same by Helm, and side by side, as in a rolling update: the manager of the next version
// waits while the other leads. At the end Helm removes it, while a workload is suspended. The
// kinds of other tests remain, which is why it takes them over.
func TestHelm(t *testing.T) {
	w, old, now := newWorld(t), previous(t), current(t)
	h := newHelm(t, testenv.Shared().Kubeconfig(), w.system)
	values := []string{"--set=webhooks.enabled=false,packageKinds=true,args={--max-rolling=1}", "--wait", "--timeout=3m"}
	h.must(t, append([]string{"install", "spillway", old.chart, "--create-namespace", "--take-ownership", "--force-conflicts", "--set=image.tag=before"}, values...)...)
	first := w.manage(old)
	w.create()
	rolls := w.rolls()

	w.change(1)
	w.underWay(1)
	h.must(t, append([]string{"upgrade", "spillway", now.chart, "--take-ownership", "--force-conflicts", "--set=image.tag=now"}, values...)...)
	second := w.manage(now)
	w.says(second, "starting")
	first.stop()
	w.settled(1)
	rolls = w.rolledOnce(rolls)

	w.change(2)
	w.underWay(2)
	h.must(t, "rollback", "spillway", "1", "--wait", "--timeout=3m")
	third := w.manage(old)
	w.says(third, "starting")
	second.stop()
	w.settled(2)
	w.rolledOnce(rolls)
	third.stop()

	h.must(t, append([]string{"upgrade", "spillway", now.chart, "--take-ownership", "--force-conflicts", "--set=image.tag=now"}, values...)...)
	w.removed(h, now)
}

// suspended is a Deployment that waits for config that never comes.
const suspended = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: late, annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/suspended: scheduling-gate}},
spec: {replicas: 1, selector: {matchLabels: {app: late}}, template: {metadata: {labels: {app: late}},
spec: {schedulingGates: [{name: spillway.dev/config-missing}], containers: [{name: c, image: x, envFrom: [{configMapRef: {name: later}}]}]}}}}`

// removed removes the release: what is suspended is released before all is removed.
func (w *world) removed(h helm, v version) {
	w.t.Helper()
	w.holdHooks()
	w.apply(suspended)
	ended := make(chan error, 1)
	go func() {
		_, err := h.run(w.t.Context(), "uninstall", "spillway", "--timeout=3m")
		ended <- err
	}()
	out := w.hook(v)
	if !strings.Contains(out, "deployment/late in namespace "+w.namespace+" released") || !strings.Contains(out, "deployment/spillway deleted") {
		w.t.Errorf("the hook says %s", out)
	}
	if err := <-ended; err != nil {
		w.t.Fatal(err)
	}
	late := w.object(suspended)
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(late), late); err != nil || strings.Contains(fmt.Sprint(late.Object["spec"]), "schedulingGates") {
		w.t.Errorf("it is suspended: %v, %v", late.Object["spec"], err)
	}
	out, code := w.run(v, "check", "-n", w.system)
	if code == 0 || !strings.Contains(out, "no manager in namespace "+w.system) {
		w.t.Errorf("afterwards check says %s", out)
	}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: "rolloutgroups.spillway.dev"}, w.object(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`)); err != nil {
		w.t.Errorf("a kind is gone: %v", err)
	}
	if listed := h.must(w.t, "list", "--short"); strings.TrimSpace(listed) != "" {
		w.t.Errorf("Helm still has %s", listed)
	}
}

// holdHooks keeps those who play the kubelet from completing the Pod of the hook, which this
// test does once its command has run.
func (w *world) holdHooks() {
	w.t.Helper()
	const policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: hold-hooks}, spec: {
reinvocationPolicy: Never, failurePolicy: Fail, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]},
matchConditions: [{name: hook, expression: "object.metadata.?labels[?'app.kubernetes.io/component'].orValue('') == 'uninstall'"}],
mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'testenv.spillway.dev/behavior': 'never-ready'}}}"}}]}}`
	const binding = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: hold-hooks}, spec: {policyName: hold-hooks}}`
	var p admissionregistrationv1.MutatingAdmissionPolicy
	var b admissionregistrationv1.MutatingAdmissionPolicyBinding
	if err := errors.Join(yaml.UnmarshalStrict([]byte(policy), &p), yaml.UnmarshalStrict([]byte(binding), &b)); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.client.Create(w.t.Context(), &p), w.client.Create(w.t.Context(), &b)); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = errors.Join(w.client.Delete(context.Background(), &p), w.client.Delete(context.Background(), &b))
	})
	testenv.Eventually(w.t, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.Labels = w.namespace, "hook", map[string]string{"app.kubernetes.io/component": "uninstall"}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
		if err := w.client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if pod.Annotations["testenv.spillway.dev/behavior"] == "" {
			return errors.New("the policy is not in force")
		}
		return nil
	})
}

// hook runs the command of the Job in place of its container, with the permissions of its
// ServiceAccount, and returns what it says.
func (w *world) hook(v version) string {
	w.t.Helper()
	job, pods := &batchv1.Job{}, &corev1.PodList{}
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.system, Name: "spillway-uninstall"}, job); err != nil {
			return err
		}
		if err := w.client.List(ctx, pods, client.InNamespace(w.system), client.MatchingLabels{"app.kubernetes.io/component": "uninstall"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the hook has %d Pods that run", len(pods.Items))
		}
		return nil
	})
	template := job.Spec.Template.Spec
	var said bytes.Buffer
	cmd := v.command(w.t, asAccount(w.t, w.system, template.ServiceAccountName), template.Containers[0].Args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	phase := corev1.PodSucceeded
	if err := cmd.Run(); err != nil {
		w.t.Errorf("the hook: %v", err)
		phase = corev1.PodFailed
	}
	pod := pods.Items[0].DeepCopy()
	pod.Status.Phase = phase
	if err := w.client.Status().Patch(w.t.Context(), pod, client.MergeFrom(&pods.Items[0])); err != nil {
		w.t.Fatal(err)
	}
	return said.String()
}

// run runs a program to its end.
func (w *world) run(v version, args ...string) (out string, code int) {
	w.t.Helper()
	cmd := v.command(w.t, testenv.Shared().Kubeconfig(), args...)
	said, _ := cmd.CombinedOutput() // the code says it
	return string(said), cmd.ProcessState.ExitCode()
}
