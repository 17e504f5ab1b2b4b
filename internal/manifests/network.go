package manifests

import (
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// networkPolicy lets others reach what the manager serves, and nothing else of its Pods.
// Whom the manager itself may call depends on the cluster: its API server, Pods that
// prepare to be removed, other clusters.
func networkPolicy(o Options) []client.Object {
	if o.NoNetworkPolicy {
		return nil
	}
	ports := []networkingv1.NetworkPolicyPort{}
	for _, port := range o.servedPorts() {
		to := intstr.FromString(port)
		ports = append(ports, networkingv1.NetworkPolicyPort{Port: &to})
	}
	return []client.Object{&networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: meta(o, o.Namespace, name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: ManagerLabels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}}
}

func (o Options) servedPorts() []string {
	ports := []string{"metrics", "probes"}
	if len(o.served()) > 0 {
		ports = append(ports, "webhooks")
	}
	return ports
}

// metricsReader is the role of a client that collects the metrics; a user binds it.
const metricsReader = name + "-metrics-reader"

// metricsPermissions let the manager ask the API server who a client is and whether it may
// get /metrics, and let a user grant that.
func metricsPermissions(o Options) []client.Object {
	if !o.secureMetrics() {
		return nil
	}
	role := o.Namespace + ".metrics.spillway.dev"
	create := []string{verbCreate}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", role), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: create},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: create},
		}},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta(o, "", role),
			RoleRef: roleRef("ClusterRole", role), Subjects: subjects(o),
		},
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", metricsReader), Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		}},
	}
}

// secureMetrics is true unless the user has chosen otherwise, or single namespaces are
// watched: then there is no ClusterRole to ask the API server with.
func (o Options) secureMetrics() bool { return !o.PlainMetrics && len(o.Watch) == 0 }
