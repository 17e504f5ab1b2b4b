package manifests

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

const (
	certificatesDir = "/certificates"
	certificateName = admission.ServiceName
	// drain is how many seconds a Pod that has to go serves on, until everybody
	// knows that it does not serve any more.
	drain = 5
)

// Admission says how to install the server for the rings' webhooks.
type Admission struct {
	// Off leaves the webhooks out. Policies, which need no server, stay.
	Off bool
	// Source is where the certificate comes from; the default is to generate it.
	Source admission.Source
	// Hosts are further names by which API servers call, such as that of the
	// Service to which webhook configurations of users point.
	Hosts []string
	// Configurations are names of webhook configurations of users that the manager may
	// see and patch besides ours, or [AllLabeled].
	Configurations []string
	// FailClosed refuses what the zones ring lets pass when it cannot find out whether
	// a downscale is forbidden or must be prepared.
	FailClosed bool
}

// Validate says what is wrong with the choices, by the names of their flags.
func (a Admission) Validate() error {
	if slices.Equal(a.Configurations, []string{AllLabeled}) {
		a.Configurations = nil
	}
	options := admission.Options{Namespace: name, Source: a.Source, CertDir: certificatesDir, Hosts: a.Hosts, Only: a.Configurations}
	return options.Validate()
}

// admissionObjects are what the rings declare, and what serves their webhooks.
func (o Options) admissionObjects() []client.Object {
	var objects []client.Object
	if len(o.served()) > 0 {
		objects = append(objects, o.webhookService())
		objects = append(objects, o.webhookPermissions()...)
		objects = append(objects, o.certManagerObjects()...)
	}
	for _, ring := range o.Rings {
		objects = append(objects, o.policies(ring, o.declared(ring).Policies)...)
	}
	for _, ring := range o.served() {
		objects = append(objects, o.policies(ring, o.declared(ring).Unanswered)...)
		objects = append(objects, o.configurations(ring)...)
	}
	return objects
}

func (o Options) configurations(ring string) []client.Object {
	r := admission.Registration{
		Metadata: o.ringMeta(ring, admission.ConfigurationName(o.Namespace, ring)),
		Client:   admission.ByService(o.Namespace), Namespaces: o.Watch,
	}
	if o.Admission.Source == admission.CertManager {
		r.Metadata.Annotations = map[string]string{"cert-manager.io/inject-ca-from": o.Namespace + "/" + certificateName}
	}
	return r.Configurations(o.declared(ring).Webhooks)
}

// policies are those of a ring, named and bound for this installation, so that
// two of them in one cluster do not share any.
func (o Options) policies(ring string, all []client.Object) []client.Object {
	var objects []client.Object
	for _, declared := range all {
		obj, ok := declared.DeepCopyObject().(client.Object)
		if !ok {
			continue // no object is a copy of none
		}
		m := o.ringMeta(ring, admission.GuardName(o.Namespace, obj.GetName()))
		obj.SetName(m.Name)
		obj.SetLabels(m.Labels)
		o.bind(obj)
		objects = append(objects, obj)
	}
	return objects
}

// ringMeta has the labels by which what a ring declared is found, and removed
// once the ring or its declaration is gone.
func (o Options) ringMeta(ring, name string) metav1.ObjectMeta {
	m := meta(o, "", name)
	m.Labels[vocabulary.Ring] = ring
	if o.Version != "" {
		m.Labels["app.kubernetes.io/version"] = strings.ReplaceAll(o.Version, "+", "_") // labels have no plus
	}
	return m
}

// bind makes a binding one of the policy of this installation, in the
// namespaces that it watches.
func (o Options) bind(obj client.Object) {
	switch b := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		b.Spec.PolicyName = o.Namespace + "." + b.Spec.PolicyName
		b.Spec.MatchResources = o.within(b.Spec.MatchResources)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		b.Spec.PolicyName = o.Namespace + "." + b.Spec.PolicyName
		b.Spec.MatchResources = o.within(b.Spec.MatchResources)
	}
}

func (o Options) within(match *admissionregistrationv1.MatchResources) *admissionregistrationv1.MatchResources {
	if len(o.Watch) == 0 {
		return match
	}
	if match == nil {
		match = &admissionregistrationv1.MatchResources{}
	}
	match.NamespaceSelector = admission.Within(match.NamespaceSelector, o.Watch)
	return match
}

func (o Options) webhookService() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta(o, o.Namespace, admission.ServiceName),
		Spec: corev1.ServiceSpec{
			Selector: ManagerLabels(),
			Ports:    []corev1.ServicePort{{Name: "webhooks", Port: 443, TargetPort: intstr.FromString("webhooks"), Protocol: corev1.ProtocolTCP}},
		},
	}
}

func (o Options) webhookPermissions() []client.Object {
	role := o.Namespace + ".admission.spillway.dev"
	objects := []client.Object{
		&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta(o, "", role), Rules: o.injectionRules()},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta(o, "", role),
			RoleRef: roleRef("ClusterRole", role), Subjects: subjects(o),
		},
	}
	if o.mountsCertificate() {
		return objects
	}
	return append(objects,
		namespacedRole(o, o.Namespace, admission.ServiceName, CertificateRules()), roleBinding(o, o.Namespace, admission.ServiceName))
}

// injectionRules leave the patches to cert-manager where there is nothing else to inject.
func (o Options) injectionRules() []rbacv1.PolicyRule {
	rules := InjectionRules(o.webhookNames())
	if o.Admission.Source == admission.CertManager && len(o.Admission.Configurations) == 0 {
		rules[0].Verbs = []string{verbList, verbWatch}
	}
	return append(rules, o.guardRules()...)
}

// guardRules allow to see whether the policies are in force that refuse what webhooks do
// not answer.
func (o Options) guardRules() []rbacv1.PolicyRule {
	var names []string
	for _, ring := range o.served() {
		for _, w := range o.declared(ring).Webhooks {
			if w.GuardedBy != "" {
				names = append(names, admission.GuardName(o.Namespace, w.GuardedBy))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return GuardRules(slices.Compact(names))
}

// GuardRules allow to read policies and bindings of these names.
func GuardRules(names []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{admissionregistrationv1.GroupName}, Resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		ResourceNames: names, Verbs: []string{"get"},
	}}
}

// InjectionRules allow to inject the CA into webhook configurations, all if no
// names are given.
func InjectionRules(names []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{admissionregistrationv1.GroupName}, Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
		ResourceNames: names, Verbs: []string{verbList, "patch", verbWatch},
	}}
}

// CertificateRules allow to keep one Secret; that it is created cannot be bound to a name.
func CertificateRules() []rbacv1.PolicyRule {
	groups, secrets := []string{""}, []string{"secrets"}
	return []rbacv1.PolicyRule{
		{APIGroups: groups, Resources: secrets, Verbs: []string{verbCreate}},
		{APIGroups: groups, Resources: secrets, ResourceNames: []string{admission.SecretName}, Verbs: []string{verbList, "update", verbWatch}},
	}
}

// certManagerObjects make cert-manager fill the Secret that is mounted.
func (o Options) certManagerObjects() []client.Object {
	if o.Admission.Source != admission.CertManager {
		return nil
	}
	hosts := []any{}
	for _, host := range o.hosts() {
		hosts = append(hosts, host)
	}
	return []client.Object{
		o.certManagerObject("Issuer", map[string]any{"selfSigned": map[string]any{}}),
		o.certManagerObject("Certificate", map[string]any{
			"secretName": admission.SecretName, "dnsNames": hosts,
			"issuerRef":  map[string]any{"kind": "Issuer", "name": certificateName},
			"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		}),
	}
}

func (o Options) certManagerObject(kind string, spec map[string]any) client.Object {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": kind, "spec": spec}}
	m := meta(o, o.Namespace, certificateName)
	obj.SetNamespace(m.Namespace)
	obj.SetName(m.Name)
	obj.SetLabels(m.Labels)
	return obj
}

// serveWebhooks adds to the manager's Pod what it takes to serve.
func (o Options) serveWebhooks(pod *corev1.PodSpec) {
	c := &pod.Containers[0]
	if len(o.served()) == 0 {
		return
	}
	c.Args = append(c.Args, o.webhookArgs()...)
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: "webhooks", ContainerPort: admission.Port, Protocol: corev1.ProtocolTCP})
	c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain}}}
	if o.mountsCertificate() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "certificate", MountPath: certificatesDir, ReadOnly: true})
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: admission.SecretName},
		}})
	}
}

func (o Options) webhookArgs() []string {
	args := []string{"--enable-webhooks", "--webhook-namespace=" + o.Namespace}
	if o.Admission.FailClosed {
		args = append(args, "--fail-closed")
	}
	if len(o.Admission.Hosts) > 0 {
		args = append(args, "--webhook-host="+strings.Join(o.hosts(), ","))
	}
	if o.mountsCertificate() {
		args = append(args, "--webhook-cert-source="+string(o.Admission.Source), "--webhook-cert-dir="+certificatesDir)
	}
	if names := o.webhookNames(); len(names) > 0 {
		args = append(args, "--webhook-configurations="+strings.Join(names, ","))
	}
	return args
}

// AllLabeled is the name of a configuration that stands for all that carry the labels. Who
// may patch any webhook configuration has the whole cluster.
const AllLabeled = "*"

// webhookNames are the configurations that the manager may see and patch, all
// if empty.
func (o Options) webhookNames() []string {
	if slices.Contains(o.Admission.Configurations, AllLabeled) {
		return nil
	}
	names := slices.Clone(o.Admission.Configurations)
	for _, ring := range o.served() {
		names = append(names, admission.ConfigurationName(o.Namespace, ring))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// served are the rings that have webhooks to be served.
func (o Options) served() []string {
	if o.Admission.Off {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.Rings), func(ring string) bool { return len(o.declared(ring).Webhooks) == 0 })
}

func (o Options) declared(ring string) admission.Declared {
	if o.Declarations != nil {
		return o.Declarations(ring)
	}
	return manager.Options{
		Guard: guard.Options{FailClosed: o.Admission.FailClosed}, Config: config.Options{PinNamespaces: o.PinNamespaces, PinBy: o.PinBy},
	}.Declarations(ring)
}

func (o Options) mountsCertificate() bool {
	return o.Admission.Source == admission.CertManager || o.Admission.Source == admission.Files
}

// hosts are the names by which API servers call.
func (o Options) hosts() []string {
	return append([]string{admission.ServiceHost(o.Namespace)}, o.Admission.Hosts...)
}
