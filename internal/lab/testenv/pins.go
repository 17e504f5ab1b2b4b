package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Pins has the API server apply pins in some namespaces, and returns once each of its policies holds in
// one of them: that of Pods may hold before those of Jobs and CronJobs.
func Pins(t testing.TB, c client.Client, namespace string, in pin.Namespaces) {
	t.Helper()
	if _, err := c.RESTMapper().RESTMapping(pin.PolicyKind.GroupKind(), pin.PolicyKind.Version); apimeta.IsNoMatchError(err) {
		t.Skip("an API server before Kubernetes 1.36 has no policies of pins")
	}
	for _, obj := range pin.Policy(in) {
		if strings.HasSuffix(obj.GetObjectKind().GroupVersionKind().Kind, "Binding") {
			obj.SetName(namespace + "." + obj.GetName()) // all tests share the policies
			t.Cleanup(func() { _ = c.Delete(context.Background(), obj) })
		}
		Apply(t, c, obj)
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "dry", Annotations: map[string]string{
		vocabulary.Pins.Native: "secret/db=0123456789", vocabulary.PinConfig.Native: "true",
	}}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
	}}}}}
	of := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}
	Eventually(t, func(ctx context.Context) error {
		p := (&corev1.Pod{ObjectMeta: meta, Spec: spec}).DeepCopy() // what is written is changed
		j := (&batchv1.Job{ObjectMeta: meta, Spec: of}).DeepCopy()
		n := (&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: of}}}).DeepCopy()
		for _, obj := range []client.Object{p, j, n} {
			if err := c.Create(ctx, obj, client.DryRunAll); err != nil {
				return fmt.Errorf("a dry run: %w", err)
			}
		}
		if p.Spec.Containers[0].EnvFrom[0].SecretRef.Name == "db" || !pin.IsHeld(j) || vocabulary.PinConfig.Get(n.Spec.JobTemplate.Annotations) == "" {
			return errors.New("a policy of pins does not hold yet")
		}
		return nil
	})
}
