package manifests

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds that [Objects] may contain, in the order in which they have to go when
// everything is taken away.
var (
	admissionGroup = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	rbacGroup      = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	networkGroup   = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	coreGroup      = schema.GroupVersion{Version: "v1"}
	policyGroup    = schema.GroupVersion{Group: "policy", Version: "v1"}
	// monitoringGroup exists where the operator of Prometheus is installed.
	monitoringGroup = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	// gatewayGroup exists where the Gateway API is installed.
	gatewayGroup = schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}
	// certManagerGroup exists where cert-manager is installed.
	certManagerGroup = schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
)

// AdmissionKinds are those by which the API server asks the manager, or decides
// in its stead.
func AdmissionKinds() []schema.GroupVersionKind {
	return kinds(admissionGroup, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy")
}

// ManagerKinds are those that run.
func ManagerKinds() []schema.GroupVersionKind {
	return kinds(schema.GroupVersion{Group: "apps", Version: "v1"}, "Deployment")
}

// OtherKinds are what the manager needs, the permissions last. The namespace is
// not among them: it may hold what is not ours.
func OtherKinds() []schema.GroupVersionKind {
	other := kinds(certManagerGroup, "Certificate", "Issuer")
	other = append(other, kinds(monitoringGroup, "ServiceMonitor", "PrometheusRule")...)
	other = append(other, kinds(policyGroup, "PodDisruptionBudget")...)
	other = append(other, kinds(gatewayGroup, "HTTPRoute")...)
	other = append(other, kinds(networkGroup, "NetworkPolicy", "Ingress")...)
	other = append(other, kinds(coreGroup, "Service", "ConfigMap", "ServiceAccount")...)
	return append(other, kinds(rbacGroup, "RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole")...)
}

func kinds(group schema.GroupVersion, names ...string) []schema.GroupVersionKind {
	all := make([]schema.GroupVersionKind, 0, len(names))
	for _, name := range names {
		all = append(all, group.WithKind(name))
	}
	return all
}
