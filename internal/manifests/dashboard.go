package manifests

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	dashboardName = name + "-dashboard"
	// dashboardSecret may have what an issuer or a proxy is known by, dashboardCertificate the
	// certificate that browsers see. Neither needs to exist.
	dashboardSecret, dashboardSecretDir = dashboardName, "/dashboard"
	dashboardCertificate                = dashboardName + "-tls"
	dashboardPort                       = 8443
	// All stands for all names in a list of them.
	All = "*"
)

// Dashboard says how the dashboard runs in the cluster.
type Dashboard struct {
	// Enabled installs it, Steering lets people act on the pages.
	Enabled, Steering bool
	// Users and Groups are those that its account may impersonate, all with [All].
	Users, Groups []string
	// Resources are those of its Pod.
	Resources corev1.ResourceRequirements
	// Replicas is how many Pods there are. More than one need a key for sessions in the Secret.
	Replicas int32
	// Args are further arguments, such as those about the issuer.
	Args []string
}

// dashboardLabels find the Deployment and the Pods of the dashboard.
func dashboardLabels() map[string]string {
	labels := ManagerLabels()
	labels["app.kubernetes.io/component"] = "dashboard"
	return labels
}

func dashboardMeta(o Options, namespace, name string) metav1.ObjectMeta {
	m := meta(o, namespace, name)
	m.Labels["app.kubernetes.io/component"] = "dashboard"
	return m
}

// InstalledDashboardLabels are those of all objects of the dashboard that the command installs
// for the manager that runs in a namespace.
func InstalledDashboardLabels(namespace string) map[string]string {
	return dashboardMeta(Options{Namespace: namespace}, "", "").Labels
}

// dashboardObjects are the dashboard and its account, which may impersonate and nothing else.
func dashboardObjects(o Options) ([]client.Object, error) {
	if !o.Dashboard.Enabled {
		return nil, nil
	}
	rules, err := o.Dashboard.rules()
	if err != nil {
		return nil, err
	}
	role := o.Namespace + ".dashboard.spillway.dev"
	objects := []client.Object{
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: dashboardMeta(o, o.Namespace, dashboardName)},
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: dashboardMeta(o, "", role), Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: dashboardMeta(o, "", role), RoleRef: roleRef("ClusterRole", role),
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: dashboardName, Namespace: o.Namespace}},
		},
	}
	if !o.NoNetworkPolicy {
		objects = append(objects, dashboardPolicy(o))
	}
	return append(objects, dashboardDeployment(o), &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: dashboardMeta(o, o.Namespace, dashboardName),
		Spec: corev1.ServiceSpec{
			Selector: dashboardLabels(),
			Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https"), Protocol: corev1.ProtocolTCP}},
		},
	}), nil
}

// rules are the permissions of the account, for the users and groups that are named.
func (d *Dashboard) rules() ([]rbacv1.PolicyRule, error) {
	generated, err := RulesOf("dashboard")
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, rule := range generated {
		for _, resource := range rule.Resources {
			names := map[string][]string{"users": d.Users, "groups": d.Groups}[resource]
			if len(names) == 0 {
				continue
			}
			if slices.Contains(names, All) {
				names = nil
			}
			rules = append(rules, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, ResourceNames: names, Verbs: rule.Verbs})
		}
	}
	return rules, nil
}

func dashboardPolicy(o Options) *networkingv1.NetworkPolicy {
	ports := []networkingv1.NetworkPolicyPort{}
	for _, port := range []string{"https", "probes"} {
		to := intstr.FromString(port)
		ports = append(ports, networkingv1.NetworkPolicyPort{Port: &to})
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: dashboardMeta(o, o.Namespace, dashboardName),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: dashboardLabels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
}

// dashboardDeployment has one Pod, of which the sessions are, or several that share the key of
// their sessions and so are replaced one after another.
func dashboardDeployment(o Options) *appsv1.Deployment {
	d := deployment(o)
	d.ObjectMeta = dashboardMeta(o, o.Namespace, dashboardName)
	replicas := max(o.Dashboard.Replicas, 1)
	d.Spec.Replicas, d.Spec.Selector.MatchLabels = &replicas, dashboardLabels()
	// A Pod goes before the next one comes: a session is not of both, if they share no key.
	none, single := intstr.FromInt32(0), intstr.FromInt32(1)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &none, MaxUnavailable: &single}}
	d.Spec.Template.Labels = dashboardLabels()
	pod := &d.Spec.Template.Spec
	pod.ServiceAccountName = dashboardName
	optional := yes()
	pod.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: dashboardSecret, Optional: optional}}},
		{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: dashboardCertificate, Optional: optional}}},
	}
	c := &pod.Containers[0]
	c.Name, c.Args, c.Env, c.Lifecycle = "dashboard", o.Dashboard.arguments(), nil, nil
	c.Ports = []corev1.ContainerPort{
		{Name: "https", ContainerPort: dashboardPort, Protocol: corev1.ProtocolTCP},
		{Name: "probes", ContainerPort: probePort, Protocol: corev1.ProtocolTCP},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "secret", MountPath: dashboardSecretDir, ReadOnly: true},
		{Name: "certificate", MountPath: certificatesDir, ReadOnly: true},
	}
	c.Resources = o.Dashboard.Resources
	return d
}

// DefaultDashboard is what holds unless a user says otherwise: there is none.
func DefaultDashboard() Dashboard {
	return Dashboard{Users: []string{All}, Replicas: 1, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}}
}

func (d *Dashboard) arguments() []string {
	args := []string{
		"dashboard", "serve", "--tls-dir=" + certificatesDir, "--oidc-client-secret-file=" + dashboardSecretDir + "/client-secret",
		"--session-key-file=" + dashboardSecretDir + "/session-key",
	}
	if d.Replicas > 1 {
		args = append(args, "--session-key-required")
	}
	if d.Steering {
		args = append(args, "--steering")
	}
	switch {
	case slices.Contains(d.Groups, All):
		args = append(args, "--groups="+All)
	case len(d.Groups) > 0:
		args = append(args, "--groups="+strings.Join(d.Groups, ","))
	}
	return append(args, d.Args...) // last, so that they win
}
