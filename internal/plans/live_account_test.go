package plans_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// as makes plans act as a ServiceAccount.
func as(account string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = account }
}

// instanceAs makes an Instance whose plans act as a ServiceAccount.
func (c *cluster) instanceAs(account, name, version string) {
	c.t.Helper()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	i.Spec.OperatorVersion.Name = version
	as(account)(i)
	if err := c.client.Create(c.t.Context(), i); err != nil {
		c.t.Fatal(err)
	}
}

// account makes a ServiceAccount that may do this.
func (c *cluster) account(name string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	meta := metav1.ObjectMeta{Namespace: c.namespace, Name: name}
	for _, obj := range []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, c.binding(name, name)} {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) binding(role, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: account}},
	}
}

// printed is a command that messages print.
var printed = regexp.MustCompile(`kubectl create role (\S+) -n (\S+) --verb=(\S+) --resource=(\S+)(?: --resource-name=(\S+))? && kubectl create rolebinding (\S+) -n (\S+) --role=(\S+) --serviceaccount=(\S+):([^\s;]+)`)

// follow does what the sentence of an Instance says grants the permission.
func (c *cluster) follow(instance string) {
	c.t.Helper()
	sentence := c.now(instance).Status.WaitingFor
	m := printed.FindStringSubmatch(sentence)
	if m == nil || m[2] != c.namespace || m[7] != c.namespace || m[6] != m[8] || m[9] != c.namespace {
		c.t.Fatalf("no command grants it: %s", sentence)
	}
	resource, group, _ := strings.Cut(m[4], ".")
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: strings.Split(m[3], ",")}
	if m[5] != "" {
		rule.ResourceNames = []string{m[5]}
	}
	for _, obj := range []client.Object{&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: m[1]}, Rules: []rbacv1.PolicyRule{rule}}, c.binding(m[8], m[10])} {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// shipped has the manager connect with the token of a ServiceAccount that has what is installed
// for the ring in a namespace, and nothing else, under the policies that restrict it.
func (c *cluster) shipped(change func(*manifests.Options)) {
	c.t.Helper()
	o := manifests.Default(manager.RingPlans)
	o.Namespace, o.Values.WatchNamespaces, o.Values.Webhooks.Enabled = c.namespace, []string{c.namespace}, false
	if change != nil {
		change(&o)
	}
	objects, err := manifests.Objects(o)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, obj := range objects {
		if slices.Contains([]string{"ServiceAccount", "Role", "RoleBinding"}, obj.GetKind()) || strings.HasSuffix(obj.GetName(), ".manager.spillway.dev") {
			testenv.Apply(c.t, c.client, obj)
			c.t.Cleanup(func() { _ = c.client.Delete(context.Background(), obj) })
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "spillway"}}
	if err := c.client.SubResource("token").Create(c.t.Context(), account, request); err != nil {
		c.t.Fatal(err)
	}
	c.config = rest.AnonymousClientConfig(c.cp.Config())
	c.config.BearerToken, c.config.QPS = request.Status.Token, -1
}

const (
	oneConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}"
	oneSecret    = "{apiVersion: v1, kind: Secret, metadata: {name: app}}"
)

// TestAnAccountThatMayDoOneThing: plans do what the account may, and nothing that the manager may
// not; they say who lacks which permission and how to grant it, and go on once it is granted.
func TestAnAccountThatMayDoOneThing(t *testing.T) {
	c := newCluster(t)
	c.shipped(nil)
	c.account("deployer", rule("", "configmaps", "get", "create", "patch"))
	c.operator("config-1", one(oneConfigMap))
	c.operator("secret-1", one(oneSecret))
	c.manage()

	c.instanceAs("deployer", "web", "config-1")
	c.waits("web", "no permission to read ConfigMap app: the manager has no permission to act as ServiceAccount deployer of namespace "+c.namespace)
	c.follow("web")
	c.rests("web", "deploy Complete")

	c.instanceAs("deployer", "token", "secret-1")
	c.waits("token", "ServiceAccount deployer of namespace "+c.namespace+" has no permission to get secrets in namespace "+c.namespace)
	c.follow("token")
	c.rests("token", "deploy Complete")

	c.instance("other", "config-1") // as the manager, which may not
	c.waits("other", "no permission to read ConfigMap app")
	if got := c.now("other").Status.WaitingFor; strings.Contains(got, "deployer") {
		t.Errorf("it acts as the account of another Instance: %s", got)
	}
}

// TestAnAccountWaitsForHealth: what is applied as an account is watched as the account, if that may
// watch it, or read again, if it may only get it.
func TestAnAccountWaitsForHealth(t *testing.T) {
	const app = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: x}]}}}}"
	c := newCluster(t)
	c.shipped(func(o *manifests.Options) { o.Values.PlanAccounts = []string{"watching", "looking"} })
	c.account("watching", rule("apps", "deployments", "get", "list", "watch", "create", "patch", "delete"))
	c.account("looking", rule("apps", "deployments", "get", "create", "patch", "delete"))
	c.manage()
	for _, name := range []string{"watching", "looking"} {
		c.operator(name, one(fmt.Sprintf(app, name)))
		c.instanceAs(name, name, name)
		c.rests(name, "deploy Complete")
	}
	d := c.deployment("watching")
	if err := c.client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c.waits("watching", "Deployment watching not found")
}

// TestAnAccountDeletesWithItsOwnRights: tasks that delete, pruning and cleanup are the account's,
// too; what it may not read, a plan does not tell.
func TestAnAccountDeletesWithItsOwnRights(t *testing.T) {
	c := newCluster(t)
	c.account("deployer", rule("", "configmaps", "get", "create", "patch"))
	c.operator("app-1", removes)
	c.apply(oneSecret)
	c.operator("secret-1", one(oneSecret))
	c.manage() // with all rights

	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	i.Spec.OperatorVersion.Name = "app-1"
	set("EXTRA", "true")(i)
	as("deployer")(i)
	if err := c.client.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	c.rests("web", "deploy Complete")
	c.change("web", set("EXTRA", "false"))
	c.waits("web", "ServiceAccount deployer of namespace "+c.namespace+" has no permission to delete configmaps")
	if c.get(&corev1.ConfigMap{}, "extra") != nil {
		t.Error("the manager has deleted it with its own rights")
	}
	c.follow("web")
	c.rests("web", "deploy Complete, update Complete")
	c.gone(&corev1.ConfigMap{}, "extra")
	c.remove(&v1beta1.Instance{}, "web")
	c.gone(&v1beta1.Instance{}, "web")

	c.instanceAs("deployer", "curious", "secret-1")
	c.waits("curious", "no permission to read Secret app")
	if got := c.now("curious").Status.WaitingFor; strings.Contains(got, "exists") {
		t.Errorf("it tells what the account may not read: %s", got)
	}
	c.change("curious", as("")) // also while its plan runs
	c.waits("curious", "Secret app exists and does not belong to Instance curious")
}

// TestAnAccountNeedsNoClusterRole: a claim that binds once a Pod uses it is healthy, though its
// account may not read the StorageClass that says so; an object of that kind it may not touch.
func TestAnAccountNeedsNoClusterRole(t *testing.T) {
	c := newCluster(t)
	class := c.namespace + "-class"
	testenv.ApplyManifest(t, c.client, "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: "+class+"}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}")
	c.account("deployer", rule("", "persistentvolumeclaims", "get", "create", "patch"))
	c.operator("claim-1", one("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: "+class+", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"))
	c.operator("class-1", one("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: "+class+", labels: {heritage: kudo}}, provisioner: example.com/mine}"))
	c.manage()
	c.instanceAs("deployer", "claim", "claim-1")
	c.rests("claim", "deploy Complete")
	c.instanceAs("deployer", "class", "class-1")
	c.waits("class", "StorageClass "+class)
	if live := (&storagev1.StorageClass{}); c.client.Get(t.Context(), client.ObjectKey{Name: class}, live) != nil || live.Provisioner != "example.com/none" {
		t.Error("the StorageClass is changed")
	}
}

// TestTheDefaultAccount: with a default account no Instance has the manager's rights, and children
// have those of their parents.
func TestTheDefaultAccount(t *testing.T) {
	c := newCluster(t)
	c.account("applier", rule("", "secrets", "get", "create", "patch"))
	c.account("parent", rule("kudo.dev", "operatorversions", "get"), rule("kudo.dev", "instances", "get", "create", "patch"), rule("", "configmaps", "get", "create", "patch"))
	c.operator("config-1", one(oneConfigMap))
	c.operator("secret-1", one(oneSecret))
	c.operator("parent-1", `
version: "1"
tasks: [{name: child, kind: KudoOperator, spec: {package: config, operatorVersion: "1"}}]
plans: {deploy: {phases: [{name: main, steps: [{name: child, tasks: [child]}]}]}}
`)
	stop := c.manageWith(fault.New(), func(o *manager.Options) { o.Plans.DefaultServiceAccount = "applier" })
	defer stop()
	c.instance("token", "secret-1")
	c.rests("token", "deploy Complete")
	c.instance("config", "config-1")
	c.waits("config", "ServiceAccount applier of namespace "+c.namespace+" has no permission to get configmaps")
	c.instanceAs("parent", "top", "parent-1")
	c.rests("top", "deploy Complete")
	if got := c.now("top-config").Spec.ServiceAccountName; got != "parent" {
		t.Errorf("the child acts as %q", got)
	}
}

// TestNoAccountOfAnotherNamespace: no name leads to another account than one of the namespace.
func TestNoAccountOfAnotherNamespace(t *testing.T) {
	c := newCluster(t)
	c.operator("config-1", one(oneConfigMap))
	for _, name := range []string{"default:default", "../default", "system:admin", "a/b", "A", "*"} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
		i.Spec.OperatorVersion.Name = "config-1"
		as(name)(i)
		err := c.client.Create(t.Context(), i)
		if status := apierrors.APIStatus(nil); !errors.As(err, &status) || !strings.Contains(err.Error(), "spec.serviceAccountName") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestARefusalIsOfItsAccount: what the API server has refused to an account, over and over, is asked again
// immediately as another one, also while the plan runs.
func TestARefusalIsOfItsAccount(t *testing.T) {
	c := newCluster(t)
	c.account("reader", rule("", "configmaps", "get"))
	c.account("deployer", rule("", "configmaps", "get", "create", "patch"))
	c.operator("config-1", one(oneConfigMap))
	c.manage()
	c.instanceAs("reader", "web", "config-1")
	const refused = "ServiceAccount reader of namespace "
	c.waits("web", refused)
	for range 9 {
		c.barrier.Step(t, time.Hour)
	}
	c.waits("web", refused) // the next try is in minutes
	c.change("web", as("deployer"))
	c.barrier.Wait(t)
	if err := c.isAtRest("web", "deploy Complete"); err != nil {
		t.Error(err)
	}
}

// TestFilesAreReadAsTheAccount: the API server is asked to run a command in the Pod of a Pipe as the account, which needs
// the permission for it.
func TestFilesAreReadAsTheAccount(t *testing.T) {
	c := newCluster(t)
	c.files = nil // the nodes run no command: those of the lab are only played
	c.account("piper", rule("", "pods", "get", "create", "patch", "delete"), rule("", "secrets", "get", "create", "patch"))
	c.operator("pipe-1", `
version: "1"
tasks: [{name: pipe, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /tmp/x, kind: Secret, key: x}]}}]
plans: {deploy: {phases: [{name: main, steps: [{name: pipe, tasks: [pipe]}]}]}}
templates:
  pod.yaml: |
    {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: [{name: v, emptyDir: {}}], initContainers: [{name: make, image: x, volumeMounts: [{name: v, mountPath: /tmp}]}]}}
`)
	c.manage()
	c.instanceAs("piper", "web", "pipe-1")
	c.waits("web", "ServiceAccount piper of namespace "+c.namespace+" has no permission to get pods/exec")
	c.follow("web")
	c.eventually(func() error {
		c.atRest(time.Hour)
		if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "read file /tmp/x: ") || strings.Contains(got, "permission") {
			return errors.New(got)
		}
		return nil
	})
}
