package plans_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// widgets is a package with a kind, whose version v1 has these fields.
func (c *cluster) widgets(name, fields string) {
	c.t.Helper()
	c.definition(name, fmt.Sprintf("[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: %s}}}}]", fields))
}

func (c *cluster) definition(name, versions string) {
	c.t.Helper()
	c.operator(name, one(fmt.Sprintf(
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}, spec: {group: %s, scope: Namespaced, names: {kind: Widget, plural: widgets, singular: widget}, versions: %s}}",
		c.kind(), c.group(), versions)))
	c.t.Cleanup(func() {
		_ = c.client.Delete(context.WithoutCancel(c.t.Context()), definitionOf(c.kind()))
	})
}

// definitionOf is the CustomResourceDefinition of a name.
func definitionOf(name string) *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.Name = name
	return crd
}

func (c *cluster) group() string { return strings.ReplaceAll(c.namespace, "-", "") + ".test" }

func (c *cluster) kind() string { return "widgets." + c.group() }

// widget makes or changes a Widget, as a user does.
func (c *cluster) widget(namespace, name, spec string) {
	c.t.Helper()
	testenv.Apply(c.t, c.client, c.widgetOf(namespace, name, spec))
}

func (c *cluster) widgetOf(namespace, name, spec string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group(), Version: "v1", Kind: "Widget"})
	u.SetNamespace(namespace)
	u.SetName(name)
	for field := range strings.FieldsSeq(spec) {
		key, value, _ := strings.Cut(field, "=")
		_ = unstructured.SetNestedField(u.Object, value, "spec", key)
	}
	return u
}

const (
	anySize  = "{type: object, properties: {size: {type: string}, secret: {type: string}, color: {type: string}}}"
	fewSizes = "{type: object, required: [color], properties: {size: {type: string, enum: [s, m]}, secret: {type: string, maxLength: 3}, color: {type: string, default: red}}, " +
		"x-kubernetes-validations: [{rule: \"self.size != 'm' || self.color == 'red'\", message: m is red}]}"
)

// TestAKindThatWouldRefuseObjectsIsNotChanged: the plan fails before it changes the kind, and says
// which object has which field, without its value, and goes on once that is changed. What has a
// default, and what is invalid already, stands in no way.
func TestAKindThatWouldRefuseObjectsIsNotChanged(t *testing.T) {
	c := newCluster(t)
	elsewhere := testenv.NamespaceOn(t, c.cp)
	c.widgets("app-1", anySize)
	c.widgets("app-2", fewSizes)
	c.widgets("app-3", strings.ReplaceAll(fewSizes, "[s, m]", "[s, m, l]"))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.widget(c.namespace, "a", "size=xl")
	c.widget(c.namespace, "good", "size=s")
	c.widget(elsewhere, "b", "size=s secret=hunter2")
	c.faults.Reset()
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Failed")
	got := c.now("web").Status.WaitingFor
	for _, want := range []string{
		"CustomResourceDefinition " + c.kind() + " cannot be changed: objects that exist would be invalid (2)",
		"Widget a in namespace " + c.namespace + `: spec.size: Unsupported value: supported values: "s", "m"`,
		"an object outside namespace " + c.namespace + ": spec.secret: Too long: may not be more than 3 bytes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") || strings.Contains(got, elsewhere) {
		t.Errorf("it says what a tenant must not know: %s", got)
	}
	if n := c.requests("customresourcedefinitions", c.kind()); n != 0 {
		t.Errorf("the kind was written %d times", n)
	}
	c.widget(c.namespace, "a", "size=m")
	c.widget(elsewhere, "b", "size=s secret=abc")
	c.change("web", annotate(vocabulary.RetryPlan.Native, string(c.now("web").Status.Execution.UID)))
	c.rests("web", "deploy Complete, update Failed, update Complete")
	c.change("web", use("app-3"))
	c.rests("web", "deploy Complete, update Failed, update Complete, update Complete")
}

// TestOfManyObjectsAllPagesAreRead: the object that would be invalid is on the last page.
func TestOfManyObjectsAllPagesAreRead(t *testing.T) {
	c := newCluster(t)
	c.widgets("app-1", anySize)
	c.widgets("app-2", fewSizes)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	var group errgroup.Group
	group.SetLimit(8)
	for i := range 255 {
		group.Go(func() error {
			return c.client.Create(t.Context(), c.widgetOf(c.namespace, fmt.Sprintf("w%03d", i), "size=s"))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	c.widget(c.namespace, "z", "size=m color=green")
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "would be invalid (1): Widget z in namespace "+c.namespace+": spec: Invalid value: m is red") {
		t.Error(got)
	}
}

// TestAVersionInWhichObjectsAreStoredIsKept: nor is a version that goes while a Widget of another
// version would be invalid.
func TestAVersionInWhichObjectsAreStoredIsKept(t *testing.T) {
	c := newCluster(t)
	c.widgets("app-1", anySize)
	c.definition("app-2", "[{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: "+anySize+"}}}}]")
	c.definition("app-3", "[{name: v1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: "+fewSizes+"}}}}]")
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.widget(c.namespace, "a", "size=xl")
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "version v1 would be removed, in which objects may be stored (status.storedVersions); keep it with served: false") {
		t.Error(got)
	}
	c.change("web", use("app-3"))
	c.rests("web", "deploy Complete, update Failed, update Failed")
	if got := c.now("web").Status.WaitingFor; !strings.Contains(got, "Widget a in namespace "+c.namespace+": spec.size: Unsupported value") {
		t.Error(got)
	}
}

// TestWhoMayNotReadObjectsOfAKind: the kind is changed where the manager itself has no permission
// to read its objects, which packages need not grant, and an Event says so; an account must have it.
func TestWhoMayNotReadObjectsOfAKind(t *testing.T) {
	c := newCluster(t)
	c.widgets("app-1", anySize)
	c.widgets("app-2", fewSizes)
	c.account("deployer")
	c.everywhere("kinds", rbacv1.ServiceAccountKind, "deployer", rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch", "delete"))
	c.manage()
	c.instanceAs("deployer", "web", "app-1")
	c.rests("web", "deploy Complete")
	c.widget(c.namespace, "a", "size=xl")
	c.change("web", use("app-2"))
	c.waits("web", "cannot tell what a change of CustomResourceDefinition "+c.kind()+" breaks: ServiceAccount deployer of namespace "+c.namespace+" has no permission to list "+c.kind()+" in the whole cluster; grant it with: ")
	c.everywhere("widgets", rbacv1.ServiceAccountKind, "deployer", rule(c.group(), "widgets", "list"))
	c.rests("web", "deploy Complete, update Failed")
}

// everywhere lets a user or an account do this in all namespaces.
func (c *cluster) everywhere(name, kind, who string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	subject := rbacv1.Subject{Kind: kind, Name: who}
	if kind == rbacv1.ServiceAccountKind {
		subject.Namespace = c.namespace
	} else {
		subject.APIGroup = rbacv1.GroupName
	}
	meta := metav1.ObjectMeta{Name: c.namespace + "-" + name}
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: []rbacv1.Subject{subject}},
	} {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = c.client.Delete(context.WithoutCancel(c.t.Context()), obj) })
	}
}

// TestTheManagerChangesAKindUnread: see [TestWhoMayNotReadObjectsOfAKind].
func TestTheManagerChangesAKindUnread(t *testing.T) {
	rules, err := manifests.Rules([]string{manager.RingPlans})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	user := "manager-of-" + c.namespace
	c.grant(user, packageRules(t)...)
	c.everywhere("kinds", rbacv1.UserKind, user, append(rules, rule("apiextensions.k8s.io", "customresourcedefinitions", "get", "list", "watch", "create", "patch", "delete"))...)
	c.config = testenv.Shared().ConfigAs(user)
	c.widgets("app-1", anySize)
	c.widgets("app-2", fewSizes)
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.widget(c.namespace, "a", "size=xl")
	c.change("web", use("app-2"))
	c.rests("web", "deploy Complete, update Complete")
	c.warns("ObjectsUnchecked", "no permission to list "+c.kind())
}
