package content

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// How a new content gets to what runs follows from how the Pod uses the object.
func TestReachOf(t *testing.T) {
	from := corev1.LocalObjectReference{Name: "app"}
	envFrom := corev1.Container{Name: "c", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: from}}}}
	env := corev1.Container{Name: "c", Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: from, Key: "a"},
	}}}}
	mounts := func(subPath, expr string) corev1.Container {
		return corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPath: subPath, SubPathExpr: expr}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	initial := mounts("", "")
	initial.Name = "init"
	sidecar := *initial.DeepCopy()
	sidecar.RestartPolicy = &always
	plain := []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: from}}}}
	projected := []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: from}}},
	}}}}
	secret := []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "app"}}}}
	one := func(c ...corev1.Container) []corev1.Container { return c }
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		want Reach
	}{
		"nothing":                       {corev1.PodSpec{Containers: one(mounts("", ""))}, ReachNone},
		"envFrom":                       {corev1.PodSpec{Containers: one(envFrom)}, ReachRestart},
		"env":                           {corev1.PodSpec{Containers: one(env)}, ReachRestart},
		"env of an init container":      {corev1.PodSpec{InitContainers: one(env)}, ReachRestart},
		"mounted":                       {corev1.PodSpec{Containers: one(mounts("", "")), Volumes: plain}, ReachRunning},
		"projected":                     {corev1.PodSpec{Containers: one(mounts("", "")), Volumes: projected}, ReachRunning},
		"subPath":                       {corev1.PodSpec{Containers: one(mounts("a", "")), Volumes: plain}, ReachRestart},
		"subPathExpr":                   {corev1.PodSpec{Containers: one(mounts("", "$(A)")), Volumes: plain}, ReachRestart},
		"a volume that is not mounted":  {corev1.PodSpec{Containers: one(corev1.Container{Name: "c"}), Volumes: plain}, ReachNone},
		"an init container mounts it":   {corev1.PodSpec{InitContainers: one(initial), Volumes: plain}, ReachRestart},
		"a sidecar mounts it":           {corev1.PodSpec{InitContainers: one(sidecar), Volumes: plain}, ReachRunning},
		"env, and another one mounts":   {corev1.PodSpec{Containers: one(env, mounts("", "")), Volumes: plain}, ReachRunning},
		"subPath, and another one does": {corev1.PodSpec{Containers: one(mounts("", ""), mounts("a", "")), Volumes: plain}, ReachRunning},
		"another kind of that name":     {corev1.PodSpec{Containers: one(mounts("", "")), Volumes: secret}, ReachNone},
	} {
		if got := ReachOf(&test.pod, ConfigMap, "app"); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
