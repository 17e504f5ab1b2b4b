package manifests

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
)

//go:embed generated
var generated embed.FS

const (
	name = "spillway"
	// serviceAccountName is that of the manager, by which policies know it.
	serviceAccountName = name

	metricsPort = 8080
	probePort   = 8081
	// DefaultReplicas is how many Pods the manager has, of which one leads.
	DefaultReplicas = 2
)

// verbCreate is what names cannot restrict: an object that is created has none yet.
const verbCreate = "create"

// verbList and verbWatch are what a cache needs.
const (
	verbList  = "list"
	verbWatch = "watch"
)

// Options say how to install.
type Options struct {
	// Namespace is where the manager runs.
	Namespace string
	// Image is the manager's.
	Image string
	// Watch are the namespaces to look at, all if empty. With some named, there
	// are only Roles in them, and no ClusterRole.
	Watch []string
	// Rings are those to run.
	Rings []string
	// WaveCleanup grants what it takes to remove the owner references that old
	// versions of wave set on ConfigMaps and Secrets: to patch these.
	WaveCleanup bool
	// PackageKinds grants the plans ring the kinds of Kubernetes that most packages
	// consist of. Without it, it may apply only what a user grants it by labeling a
	// ClusterRole with [vocabulary.PackagePermissions].
	PackageKinds bool
	// Admission says how the rings' webhooks are served.
	Admission Admission
	// Version is that of the program, for the labels of what rings declare.
	Version string
	// Declarations is what a ring declares; the default is [manager.Options.Declarations].
	Declarations func(ring string) admission.Declared
	// PinNamespaces are those where workloads may keep the config of each revision, and PinBy
	// is what points their Pods at it.
	PinNamespaces []string
	PinBy         pin.By
	// NoDefaultPolicy lets the manager not create the default ClusterConfigPolicy.
	NoDefaultPolicy bool
	// Unrestricted leaves out the policies that restrict what the manager's identity may
	// write.
	Unrestricted bool
	// PlainMetrics serves the metrics by HTTP, to all who can reach the manager.
	PlainMetrics bool
	// Pods says how the manager's Pods run.
	Pods Pods
	// Dashboard says how the dashboard runs.
	Dashboard Dashboard
	// NoKinds leaves out the CustomResourceDefinitions.
	NoKinds bool
	// OnlyKinds leaves out all others.
	OnlyKinds bool
	// NoNetworkPolicy and NoDisruptionBudget leave these out.
	NoNetworkPolicy, NoDisruptionBudget bool
	// ServiceMonitor makes the operator of Prometheus collect the metrics.
	ServiceMonitor bool
	// Args are further arguments of the manager.
	Args []string
}

// Objects are all objects to apply, in order.
func Objects(o Options) ([]client.Object, error) {
	rules, err := Rules(o)
	if err != nil {
		return nil, err
	}
	var kinds []client.Object
	if !o.NoKinds {
		if kinds, err = customKinds(o); err != nil {
			return nil, err
		}
	}
	if o.OnlyKinds {
		return kinds, nil
	}
	objects := slices.Concat(kinds, []client.Object{namespace(o), serviceAccount(o)})
	if len(o.Watch) == 0 {
		objects = append(objects, clusterRole(o, rules), clusterRoleBinding(o))
	}
	for _, watched := range o.Watch {
		objects = append(objects, namespacedRole(o, watched, name, rules), roleBinding(o, watched, name))
	}
	objects = append(objects, namespacedRole(o, o.Namespace, leaderRole, leaderRules()), roleBinding(o, o.Namespace, leaderRole))
	objects = append(objects, packagePermissions(o)...)
	objects = append(objects, metricsPermissions(o)...)
	objects = append(objects, networkPolicy(o)...)
	objects = append(objects, disruptionBudget(o)...)
	objects = append(objects, deployment(o), service(o))
	objects = append(objects, monitor(o)...)
	pages, err := dashboardObjects(o)
	if err != nil {
		return nil, err
	}
	objects = append(objects, pages...)
	return slices.Concat(objects, o.identityPolicies(), o.admissionObjects(), o.pinObjects()), nil
}

// Gates is the part that measures, which all rings with rollouts of their own share.
const Gates = "gates"

// Notify is the part that sends messages about the rollouts of these rings.
const Notify = "notify"

// Parts are the rings, and parts of rings that have kinds or permissions of their own: the
// controllers of assemblages on the hub, the one of gates, and the one of Notifiers.
func Parts(rings []string) []string {
	var all []string
	for _, ring := range rings {
		all = append(all, ring)
		if ring == manager.RingFleet {
			all = append(all, "hub")
		}
		if manager.HasGates(ring) && !slices.Contains(all, Gates) {
			all = append(all, Gates, Notify)
		}
	}
	return all
}

// CustomKinds are the CustomResourceDefinitions of all rings.
func CustomKinds() ([]client.Object, error) {
	return customKinds(Options{Rings: append(manager.Rings(), manager.RingFleet, manager.RingAssemblage)})
}

// KindsOf are the CustomResourceDefinitions of some rings.
func KindsOf(rings []string) ([]*unstructured.Unstructured, error) {
	return unstructuredOf(customKinds(Options{Rings: rings}))
}

// KindsOfPart are the CustomResourceDefinitions of a ring, or a part of one, alone.
func KindsOfPart(part string) ([]*unstructured.Unstructured, error) {
	return unstructuredOf(kindsOf(part))
}

func unstructuredOf(objects []client.Object, err error) ([]*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}
	kinds := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		if crd, ok := obj.(*unstructured.Unstructured); ok {
			kinds = append(kinds, crd)
		}
	}
	return kinds, nil
}

// customKinds are the CustomResourceDefinitions of the rings.
func customKinds(o Options) ([]client.Object, error) {
	var kinds []client.Object
	for _, part := range Parts(o.Rings) {
		more, err := kindsOf(part)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, more...)
	}
	return kinds, nil
}

func kindsOf(part string) ([]client.Object, error) {
	files, err := fs.Glob(generated, "generated/"+part+"/*_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("kinds of ring %q: %w", part, err)
	}
	var kinds []client.Object
	for _, file := range files {
		crd, err := customKind(file)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, crd)
	}
	return kinds, nil
}

func customKind(file string) (client.Object, error) {
	raw, err := generated.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		return nil, fmt.Errorf("generated kind %s: %w", file, err)
	}
	crd.SetLabels(ManagerLabels()) // it belongs to no installation alone, and outlives them all
	return crd, nil
}

const leaderRole = name + "-leader-election"

// leaderRules allow to hold one Lease, and to keep one with what the config ring has
// rolled; that they are created cannot be bound to a name.
func leaderRules() []rbacv1.PolicyRule {
	groups, leases := []string{"coordination.k8s.io"}, []string{"leases"}
	return []rbacv1.PolicyRule{
		{APIGroups: groups, Resources: leases, Verbs: []string{verbCreate}},
		{APIGroups: groups, Resources: leases, ResourceNames: []string{manager.LeaseName, config.BudgetLease(manager.LeaseName)}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{verbCreate, "patch"}}, // also that a leader was elected
	}
}

func serviceAccount(o Options) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: meta(o, o.Namespace, serviceAccountName),
	}
}

func clusterRole(o Options, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", name), Rules: rules}
}

func clusterRoleBinding(o Options) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta(o, "", name),
		RoleRef: roleRef("ClusterRole", name), Subjects: subjects(o),
	}
}

func namespacedRole(o Options, namespace, name string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta(o, namespace, name), Rules: rules}
}

// Rules are the permissions that the rings need.
func Rules(o Options) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, part := range Parts(o.Rings) {
		more, err := RulesOf(part)
		if err != nil {
			return nil, err
		}
		for i := range more {
			if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, more[i]) }) {
				rules = append(rules, more[i]) // several rings need some
			}
		}
	}
	if len(o.Watch) > 0 {
		rules = withoutClusterPolicies(rules)
	}
	if o.WaveCleanup {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"patch"},
		})
	}
	slices.SortStableFunc(rules, func(a, b rbacv1.PolicyRule) int { // whatever the order of the rings
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources), slices.Compare(a.Verbs, b.Verbs), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return rules, nil
}

// withoutClusterPolicies are the rules without the policies that are in no namespace, and
// without the definitions of kinds: no Role can grant them.
func withoutClusterPolicies(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i := range rules {
		rules[i].Resources = slices.DeleteFunc(rules[i].Resources, func(r string) bool {
			return strings.HasPrefix(r, "clusterconfigpolicies") || r == "customresourcedefinitions"
		})
	}
	return slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 && len(r.NonResourceURLs) == 0 })
}

// RulesOf are the permissions that a ring, or a part of one, needs.
func RulesOf(part string) ([]rbacv1.PolicyRule, error) {
	role := rbacv1.ClusterRole{}
	raw, err := generated.ReadFile("generated/" + part + "/role.yaml")
	if err != nil {
		return nil, fmt.Errorf("no permissions are known of ring %q: %w", part, err)
	}
	if err := yaml.UnmarshalStrict(raw, &role); err != nil {
		return nil, fmt.Errorf("generated role of ring %q: %w", part, err)
	}
	return role.Rules, nil
}

func roleBinding(o Options, namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta(o, namespace, name),
		RoleRef: roleRef("Role", name), Subjects: subjects(o),
	}
}

func namespace(o Options) *corev1.Namespace {
	ns := &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: meta(o, "", o.Namespace),
	}
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return ns
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: kind, Name: name}
}

func subjects(o Options) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Name: serviceAccountName, Namespace: o.Namespace}}
}

func deployment(o Options) *appsv1.Deployment {
	n, deadline, grace := int32(DefaultReplicas), int32(300), int64(30)
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta(o, o.Namespace, name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, ProgressDeadlineSeconds: &deadline,
			Selector: &metav1.LabelSelector{MatchLabels: ManagerLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: ManagerLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName:            serviceAccountName,
					TerminationGracePeriodSeconds: &grace,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   yes(),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{container(o)},
				},
			},
		},
	}
	o.Pods.apply(d)
	o.serveWebhooks(&d.Spec.Template.Spec)
	args := &d.Spec.Template.Spec.Containers[0].Args
	*args = append(*args, o.Args...) // last, so that they win
	return d
}

func container(o Options) corev1.Container {
	args := []string{"manager", "--leader-elect-namespace=" + o.Namespace}
	args = append(args, "--rings="+strings.Join(o.Rings, ","))
	if len(o.Watch) > 0 {
		args = append(args, "--namespaces="+strings.Join(o.Watch, ","))
	}
	if o.PinBy == pin.ByWebhook {
		args = append(args, "--pin-by="+string(o.PinBy))
	}
	if len(o.PinNamespaces) > 0 {
		args = append(args, "--pin-namespaces="+strings.Join(o.PinNamespaces, ","))
	}
	if !o.NoDefaultPolicy && slices.Contains(o.Rings, manager.RingConfig) && len(o.Watch) == 0 {
		args = append(args, "--default-config-policy")
	}
	if o.secureMetrics() {
		args = append(args, "--metrics-secure")
	}
	return corev1.Container{
		Name: "manager", Image: o.Image, Args: args,
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
			{Name: "probes", ContainerPort: probePort, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		Resources:      DefaultResources(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: no(), ReadOnlyRootFilesystem: yes(), RunAsNonRoot: yes(),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// DefaultResources are what the manager gets unless a user says otherwise.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("probes")},
	}}
}

func service(o Options) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta(o, o.Namespace, name+"-metrics"),
		Spec: corev1.ServiceSpec{
			Selector: ManagerLabels(),
			Ports:    []corev1.ServicePort{{Name: "metrics", Port: metricsPort, TargetPort: intstr.FromString("metrics"), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func meta(o Options, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: InstalledLabels(o.Namespace)}
}

// SelectInstalled finds everything that was installed for the manager that runs in a
// namespace, and its dashboard, by the command, by Helm or by any other tool.
func SelectInstalled(namespace string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": namespace}
}

// InstalledLabels are those of everything that the command installs for the manager that
// runs in a namespace.
func InstalledLabels(namespace string) map[string]string {
	labels := ManagerLabels()
	labels["app.kubernetes.io/managed-by"] = "spillway-install"
	labels["app.kubernetes.io/instance"] = namespace
	return labels
}

// ManagerLabels find the manager's Deployment and Pods.
func ManagerLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": "manager"}
}

func yes() *bool { v := true; return &v }

func no() *bool { v := false; return &v }
