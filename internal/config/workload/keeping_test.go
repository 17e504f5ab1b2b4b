package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
)

// What a workload keeps follows from how it uses the object, and from its pins.
func TestKeepingOf(t *testing.T) {
	r := content.Release{Object: content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}, Digest: "1111111111aa"}
	elsewhere := content.Release{Object: content.Object{Kind: content.Secret, Namespace: "vault", Name: "db"}, Digest: r.Digest}
	env := corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
	}}}}}
	mounted := corev1.PodSpec{
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "v"}}}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}},
	}
	earlier := pin.Pins{{Kind: content.Secret, Name: "db", Digest: "2222222222"}}
	same := pin.Pins{{Kind: content.Secret, Name: "db", Digest: "1111111111"}}
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		pins pin.Pins
		of   content.Release
		want Keeping
	}{
		"mounted":                            {mounted, nil, r, KeepsNothing},
		"environment":                        {env, nil, r, KeepsRunning},
		"mounted, pinned to an earlier one":  {mounted, earlier, r, KeepsAll},
		"mounted, pinned to this one":        {mounted, same, r, KeepsNothing},
		"environment, pinned to earlier one": {env, earlier, r, KeepsAll},
		"named by an annotation alone":       {corev1.PodSpec{}, nil, r, KeepsUnread},
		"an object of another namespace":     {mounted, nil, elsewhere, KeepsUnread},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
		d.Spec.Template.Spec = test.pod
		w := Read(d)
		w.Pinning.Pins = test.pins
		if got := w.KeepingOf(test.of); got != test.want {
			t.Errorf("%s: %d, want %d: %s", name, got, test.want, got.Clause())
		}
	}
}

// Workloads are counted by what they keep, and none is said to keep what it does not.
func TestWhatWorkloadsKeepIsCounted(t *testing.T) {
	for kept, want := range map[Keepings]string{
		{}:                             "",
		{KeepsAll: 1}:                  "1 workload keeps the previous config",
		{KeepsAll: 4}:                  "4 workloads keep the previous config",
		{KeepsRunning: 1}:              "running containers of 1 workload keep the previous config until they restart",
		{KeepsNothing: 4}:              "running Pods of 4 workloads get the new content, which they mount",
		{KeepsUnread: 1}:               "1 workload is not rolled",
		{KeepsAll: 2, KeepsNothing: 3}: "2 workloads keep the previous config, running Pods of 3 workloads get the new content, which they mount",
	} {
		if got := kept.Text(); got != want {
			t.Errorf("%v: %q, want %q", kept, got, want)
		}
	}
}
