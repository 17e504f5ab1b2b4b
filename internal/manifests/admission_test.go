package manifests_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

func objects(t *testing.T, change ...func(*manifests.Options)) []client.Object {
	t.Helper()
	o := manifests.Default("zones")
	o.Namespace, o.Version, o.Image = "flow", "v1.2.3+dirty", "x"
	for _, c := range change {
		c(&o)
	}
	all, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	return testenv.Typed(t, all)
}

// find returns the objects of a type.
func find[T client.Object](all []client.Object) []T {
	var found []T
	for _, obj := range all {
		if o, ok := obj.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// ofRing returns what a ring declares.
func ofRing[T client.Object](all []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(obj T) bool { return obj.GetLabels()["spillway.dev/ring"] == "" })
}

// What is installed fits together: the Service selects the Pods and leads to the
// port, the configurations lead to the Service, the host is that of the Service.
func TestWebhooksFitTogether(t *testing.T) {
	all := objects(t)
	d := find[*appsv1.Deployment](all)[0]
	container := d.Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(find[*corev1.Service](all), func(s *corev1.Service) bool { return s.Name == admission.ServiceName })
	service := find[*corev1.Service](all)[i]
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == service.Spec.Ports[0].TargetPort.StrVal && p.ContainerPort == admission.Port
	}) {
		t.Errorf("the Service leads to %v, the container has %v", service.Spec.Ports, container.Ports)
	}
	c := find[*admissionregistrationv1.MutatingWebhookConfiguration](all)[0]
	to := c.Webhooks[0].ClientConfig.Service
	if to.Name != service.Name || to.Namespace != service.Namespace || *to.Port != service.Spec.Ports[0].Port {
		t.Errorf("the API server calls %+v", to)
	}
	if host := admission.ServiceHost("flow"); host != service.Name+"."+service.Namespace+".svc" {
		t.Errorf("the certificate is for %s", host)
	}
	if name := admission.ConfigurationName("flow", "zones"); c.Name != name || find[*admissionregistrationv1.ValidatingWebhookConfiguration](all)[0].Name != name {
		t.Errorf("the manager looks for %s, there is %s", name, c.Name)
	}
	if !slices.Contains(container.Args, "--enable-webhooks") || !slices.Contains(container.Args, "--webhook-namespace=flow") {
		t.Errorf("the manager has the arguments %v", container.Args)
	}
}

// What a ring declares carries its name and the version, and is bound to this
// installation.
func TestWhatRingsDeclareIsLabeled(t *testing.T) {
	all := objects(t, func(o *manifests.Options) { o.Values.WatchNamespaces = []string{"a", "b"} })
	declared := manager.Options{}.Declarations("zones")
	n := 0
	for _, obj := range all {
		if obj.GetLabels()["spillway.dev/ring"] == "" {
			continue
		}
		n++
		if l := obj.GetLabels(); l["spillway.dev/ring"] != "zones" || l["app.kubernetes.io/version"] != "v1.2.3_dirty" || l["app.kubernetes.io/managed-by"] != "spillway-install" {
			t.Errorf("%s has labels %v", obj.GetName(), l)
		}
		if !strings.HasPrefix(obj.GetName(), "flow.") {
			t.Errorf("%s is shared with other installations", obj.GetName())
		}
	}
	if want := len(declared.Policies) + len(declared.Unanswered) + 2; n != want { // and its configurations
		t.Errorf("%d objects are of the ring, want %d", n, want)
	}
	binding := ofRing(find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](all))[0]
	if binding.Spec.PolicyName != ofRing(find[*admissionregistrationv1.ValidatingAdmissionPolicy](all))[0].Name {
		t.Errorf("the binding is of %s", binding.Spec.PolicyName)
	}
	selectors := []*metav1.LabelSelector{
		binding.Spec.MatchResources.NamespaceSelector,
		find[*admissionregistrationv1.MutatingWebhookConfiguration](all)[0].Webhooks[0].NamespaceSelector,
		find[*admissionregistrationv1.ValidatingWebhookConfiguration](all)[0].Webhooks[0].NamespaceSelector,
	}
	for _, s := range selectors {
		if got := metav1.FormatLabelSelector(s); got != "kubernetes.io/metadata.name in (a,b)" {
			t.Errorf("it holds in namespaces %s", got)
		}
	}
}

// Who may see and patch which configurations.
func TestInjectionIsBoundToNames(t *testing.T) {
	own := "flow.zones.spillway.dev"
	for name, test := range map[string]struct {
		change func(*manifests.Options)
		want   []string
	}{
		"ours":                 {func(*manifests.Options) {}, []string{own}},
		"all":                  {func(o *manifests.Options) { o.Values.Webhooks.Configurations = []string{"*"} }, nil},
		"those named and ours": {func(o *manifests.Options) { o.Values.Webhooks.Configurations = []string{"mimir"} }, []string{own, "mimir"}},
		"ours in namespaces":   {func(o *manifests.Options) { o.Values.WatchNamespaces = []string{"a"} }, []string{own}},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, test.change)
			roles := find[*rbacv1.ClusterRole](all)
			rule := roles[slices.IndexFunc(roles, func(r *rbacv1.ClusterRole) bool { return r.Name == "flow.admission.spillway.dev" })].Rules[0]
			if !slices.Equal(rule.ResourceNames, test.want) || len(rule.Verbs) != 3 {
				t.Errorf("may %v %v of %v", rule.Verbs, rule.Resources, rule.ResourceNames)
			}
			args := find[*appsv1.Deployment](all)[0].Spec.Template.Spec.Containers[0].Args
			told := slices.Contains(args, "--webhook-configurations="+strings.Join(test.want, ","))
			if told != (test.want != nil) {
				t.Errorf("the manager has the arguments %v", args)
			}
		})
	}
}

// Each source has what it needs, and no more.
func TestSources(t *testing.T) {
	for source, want := range map[admission.Source]struct {
		objects, volumes int
		secret           string
	}{
		"":                    {0, 0, admission.SecretName},
		admission.Generated:   {0, 0, admission.SecretName},
		admission.CertManager: {2, 1, admission.KeysSecretName},
		admission.Files:       {0, 1, admission.KeysSecretName},
	} {
		t.Run(string(source), func(t *testing.T) {
			all := objects(t, func(o *manifests.Options) {
				o.Values.Webhooks.CertificateSource, o.Values.Webhooks.Hosts = source, []string{"rollout-operator.flow.svc"}
			})
			issued := 0
			var secrets []string
			for _, obj := range all {
				kind := obj.GetObjectKind().GroupVersionKind()
				if kind.Group == "cert-manager.io" {
					issued++
				}
				if role, ok := obj.(*rbacv1.Role); ok && obj.GetName() == admission.ServiceName {
					last := role.Rules[len(role.Rules)-1]
					secrets = append(secrets, last.ResourceNames...)
				}
			}
			granted := find[*rbacv1.ClusterRole](all)
			injects := granted[slices.IndexFunc(granted, func(r *rbacv1.ClusterRole) bool { return r.Name == "flow.admission.spillway.dev" })]
			if !slices.Contains(injects.Rules[0].Verbs, "patch") {
				t.Errorf("may %v webhook configurations", injects.Rules[0].Verbs)
			}
			pod := find[*appsv1.Deployment](all)[0].Spec.Template.Spec
			if issued != want.objects || !slices.Equal(secrets, []string{want.secret}) || len(pod.Volumes) != want.volumes {
				t.Errorf("%d objects of cert-manager, may write %v, %d volumes", issued, secrets, len(pod.Volumes))
			}
			annotations := fmt.Sprint(find[*admissionregistrationv1.MutatingWebhookConfiguration](all)[0].Annotations)
			if strings.Contains(annotations, "cert-manager.io/inject-ca-from:flow/spillway-webhooks") != (source == admission.CertManager) {
				t.Errorf("annotations %s", annotations)
			}
			if args := pod.Containers[0].Args; !slices.Contains(args, "--webhook-host=spillway-webhooks.flow.svc,rollout-operator.flow.svc") {
				t.Errorf("the manager has the arguments %v", args)
			}
		})
	}
}

// With the addresses of API servers no other client reaches the webhooks, and what
// collects metrics and probes still reaches these. A CA of API servers is mounted.
func TestOnlyAPIServersReachTheWebhooks(t *testing.T) {
	all := objects(t, func(o *manifests.Options) {
		o.Values.Webhooks.APIServers = []string{"10.0.0.1/32", "fd00::/64"}
		o.Values.Webhooks.ClientCA, o.Values.Webhooks.ClientNames = "api-server-ca", []string{"kube-apiserver"}
	})
	from := map[string][]string{}
	for _, rule := range find[*networkingv1.NetworkPolicy](all)[0].Spec.Ingress {
		var blocks []string
		for _, peer := range rule.From {
			blocks = append(blocks, peer.IPBlock.CIDR)
		}
		for _, port := range rule.Ports {
			from[port.Port.String()] = blocks
		}
	}
	if want := map[string][]string{"metrics": nil, "probes": nil, "webhooks": {"10.0.0.1/32", "fd00::/64"}}; !reflect.DeepEqual(from, want) {
		t.Errorf("the ports are reached from %v, want %v", from, want)
	}
	pod := find[*appsv1.Deployment](all)[0].Spec.Template.Spec
	args := pod.Containers[0].Args
	if !slices.Contains(args, "--webhook-client-ca=/client-ca/ca.crt") || !slices.Contains(args, "--webhook-client-names=kube-apiserver") ||
		pod.Volumes[0].ConfigMap.Name != "api-server-ca" || pod.Containers[0].VolumeMounts[0].MountPath != "/client-ca" {
		t.Errorf("arguments %v, volumes %+v", args, pod.Volumes)
	}
}

// Our own configurations name no path: the manager sets it, and nothing sets it back.
func TestOurConfigurationsNameNoPath(t *testing.T) {
	all := objects(t, func(*manifests.Options) {})
	var n int
	for _, c := range find[*admissionregistrationv1.MutatingWebhookConfiguration](all) {
		for _, w := range c.Webhooks {
			if n++; w.ClientConfig.Service.Path != nil {
				t.Errorf("%s has path %s", w.Name, *w.ClientConfig.Service.Path)
			}
		}
	}
	for _, c := range find[*admissionregistrationv1.ValidatingWebhookConfiguration](all) {
		for _, w := range c.Webhooks {
			if n++; w.ClientConfig.Service.Path != nil {
				t.Errorf("%s has path %s", w.Name, *w.ClientConfig.Service.Path)
			}
		}
	}
	if n == 0 {
		t.Error("there are no webhooks")
	}
}

// Without webhooks there is nothing of the server, and the policies stay.
func TestWithoutWebhooks(t *testing.T) {
	all := objects(t, func(o *manifests.Options) { o.Values.Webhooks.Enabled = false })
	for _, obj := range all {
		if kind := obj.GetObjectKind().GroupVersionKind().Kind; strings.Contains(kind, "Webhook") || obj.GetName() == admission.ServiceName {
			t.Errorf("there is %s %s", kind, obj.GetName())
		}
	}
	var policies []string
	for _, p := range ofRing(find[*admissionregistrationv1.ValidatingAdmissionPolicy](all)) {
		policies = append(policies, p.Name)
	}
	if want := []string{"flow.no-downscale.zones.spillway.dev", "flow.out-of-turn.zones.spillway.dev", "flow.groups.steering.spillway.dev"}; !slices.Equal(policies, want) {
		t.Errorf("the policies are %v, want %v", policies, want)
	}
	if args := find[*appsv1.Deployment](all)[0].Spec.Template.Spec.Containers[0].Args; strings.Contains(fmt.Sprint(args), "webhook") {
		t.Errorf("the manager has the arguments %v", args)
	}
}

// What a user gives comes last, and so wins.
func TestArgumentsOfTheUserWin(t *testing.T) {
	all := objects(t, func(o *manifests.Options) { o.Values.Args = []string{"--enable-webhooks=false"} })
	args := find[*appsv1.Deployment](all)[0].Spec.Template.Spec.Containers[0].Args
	if args[len(args)-1] != "--enable-webhooks=false" {
		t.Errorf("the manager has the arguments %v", args)
	}
}
