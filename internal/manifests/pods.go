package manifests

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods says how the manager's Pods run. What is not set is as it is by default.
type Pods struct {
	Replicas                  *int32
	Resources                 *corev1.ResourceRequirements
	NodeSelector              map[string]string
	Tolerations               []corev1.Toleration
	Affinity                  *corev1.Affinity
	TopologySpreadConstraints []corev1.TopologySpreadConstraint
	PriorityClassName         string
	ImagePullPolicy           corev1.PullPolicy
	ImagePullSecrets          []corev1.LocalObjectReference
	Annotations               map[string]string
	Env                       []corev1.EnvVar
}

func (p Pods) apply(d *appsv1.Deployment) {
	if p.Replicas != nil {
		d.Spec.Replicas = p.Replicas
	}
	d.Spec.Template.Annotations = p.Annotations
	spec := &d.Spec.Template.Spec
	if p.Resources != nil {
		spec.Containers[0].Resources = *p.Resources
	}
	spec.Containers[0].ImagePullPolicy, spec.Containers[0].Env = p.ImagePullPolicy, p.Env
	spec.NodeSelector, spec.Tolerations, spec.Affinity = p.NodeSelector, p.Tolerations, p.Affinity
	spec.TopologySpreadConstraints, spec.PriorityClassName, spec.ImagePullSecrets = p.TopologySpreadConstraints, p.PriorityClassName, p.ImagePullSecrets
}

// disruptionBudget lets a drain of nodes remove one Pod of the manager at a time.
func disruptionBudget(o Options) []client.Object {
	if o.NoDisruptionBudget {
		return nil
	}
	one := intstr.FromInt32(1)
	return []client.Object{&policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: meta(o, o.Namespace, name),
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: ManagerLabels()}},
	}}
}

// monitor makes the operator of Prometheus collect the metrics. Its identity needs the
// ClusterRole that grants /metrics.
func monitor(o Options) []client.Object {
	if !o.ServiceMonitor {
		return nil
	}
	endpoint := map[string]any{"port": "metrics", "path": "/metrics"}
	if o.secureMetrics() {
		endpoint["scheme"] = "https"
		endpoint["tlsConfig"] = map[string]any{"insecureSkipVerify": true} // the manager signs its own
		endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	}
	labels := map[string]any{}
	for key, value := range ManagerLabels() {
		labels[key] = value
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "endpoints": []any{endpoint}},
	}}
	m := meta(o, o.Namespace, name)
	obj.SetNamespace(m.Namespace)
	obj.SetName(m.Name)
	obj.SetLabels(m.Labels)
	return []client.Object{obj}
}
