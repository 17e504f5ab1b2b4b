package plans_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// withPassword is a package with a parameter that is best kept in a Secret.
const withPassword = `
version: "1"
parameters: [{name: PASSWORD, required: true}, {name: MODE, default: good}]
tasks: [{name: t, kind: Apply, spec: {resources: [t.yaml]}}]
plans:
  deploy: &p {phases: [{name: main, steps: [{name: step, tasks: [t]}]}]}
  update: *p
templates:
  t.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: app}
    stringData: {password: "{{ .Params.PASSWORD }}"}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: app{{ if eq .Params.MODE "name" }}-{{ .Params.PASSWORD }}{{ end }}
      labels: {x: "{{ if eq .Params.MODE "refused" }}{{ .Params.PASSWORD }} !{{ end }}"}
    data: {length: "{{ len .Params.PASSWORD }}", broken: "{{ if eq .Params.MODE "broken" }}{{ atoi .Params.PASSWORD | printf "%z" | fail }}{{ end }}"}
`

// from has a parameter come from a Secret.
func from(name, secret, key string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		i.Spec.ParametersFrom = []v1beta1.ParameterSource{{Name: name, SecretKeyRef: v1beta1.SecretKeyReference{Name: secret, Key: key}}}
	}
}

// secret makes or changes a Secret, as a user does.
func (c *cluster) secret(name, data string) {
	c.t.Helper()
	c.apply("{apiVersion: v1, kind: Secret, metadata: {name: " + name + "}, stringData: " + data + "}")
}

// leaks are the objects, other than those of the package, that have the value in them in some form.
func (c *cluster) leaks(value string) (all []string) {
	c.t.Helper()
	sum := sha256.Sum256([]byte(value))
	lists := map[string]client.ObjectList{
		"Instance": &v1beta1.InstanceList{}, "ControllerRevision": &appsv1.ControllerRevisionList{}, "Event": &eventsv1.EventList{}, "ConfigMap": &corev1.ConfigMapList{},
	}
	for kind, list := range lists {
		c.list(list)
		raw, err := json.Marshal(list)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString(sum[:])[:16]} {
			if at := strings.Index(string(raw), form); at >= 0 {
				all = append(all, kind+": "+string(raw[max(0, at-100):at+len(form)]))
			}
		}
	}
	return all
}

// The value of a parameter stays in its Secret: it is rendered, and stands neither in the Instance, nor in Events, kept
// contents or messages. It is read as the account of the Instance, and a new value is a change of the parameter.
func TestAParameterStaysInItsSecret(t *testing.T) {
	c := newCluster(t)
	c.account("app",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"app", "db"}, Verbs: []string{"get", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})
	c.operator("app-1", withPassword)
	c.manage()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	i.Spec.OperatorVersion.Name = "app-1"
	from("PASSWORD", "db", "password")(i)
	if err := c.client.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	c.waits("web", "spec.parametersFrom: parameter PASSWORD: Secrets are read as an account only; set spec.serviceAccountName")
	c.change("web", as("app"))
	c.waits("web", "parameter PASSWORD: Secret db not found; create it")
	c.secret("db", "{user: me}")
	c.waits("web", "parameter PASSWORD: Secret db has no key password; add it")
	c.secret("db", "{password: hunter22}")
	c.rests("web", "deploy Complete")
	holds := func(want string) {
		t.Helper()
		s := &corev1.Secret{}
		if err := c.get(s, "app"); err != nil || string(s.Data["password"]) != want {
			t.Fatalf("%v: %q, want %q", err, s.Data["password"], want)
		}
	}
	holds("hunter22")

	c.apply("{apiVersion: v1, kind: Secret, metadata: {name: db, labels: {team: shop}}, stringData: {password: hunter22, other: x}}")
	c.rests("web", "deploy Complete") // the value is the same
	c.secret("db", "{password: correct-horse}")
	c.rests("web", "deploy Complete, update Complete")
	holds("correct-horse")
	if changed := c.now("web").Status.History[0].Changed; changed != "PASSWORD" {
		t.Errorf("what changed: %q", changed)
	}
	c.halt()
	c.secret("db", "{password: battery-staple}")
	c.manage()
	c.rests("web", "deploy Complete, update Complete, update Complete")
	holds("battery-staple")

	history := "deploy Complete, update Complete, update Complete"
	for mode, says := range map[string]string{
		"refused": "(hidden) !", "name": "the name of a ConfigMap would have the value of a parameter from a Secret", "broken": "template t.yaml",
	} {
		c.change("web", set("MODE", mode))
		history += ", update Failed"
		c.rests("web", history)
		if got := c.now("web").Status.WaitingFor; !strings.Contains(got, says) {
			t.Errorf("%s: %s", mode, got)
		}
	}
	for _, value := range []string{"hunter22", "correct-horse", "battery-staple"} {
		for _, leak := range c.leaks(value) {
			t.Errorf("%s is in %s", value, leak)
		}
	}
	c.change("web", set("MODE", "good", "PASSWORD", "literal"))
	c.waits("web", "PASSWORD: is set in spec.parameters and in spec.parametersFrom; remove one of them")
}

// An account that may not read the Secret does not get its value by the manager.
func TestAnAccountThatMayNotReadASecret(t *testing.T) {
	c := newCluster(t)
	c.account("app", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"create", "patch"}})
	c.operator("app-1", withPassword)
	c.secret("db", "{password: hunter22}")
	c.manage()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	i.Spec.OperatorVersion.Name = "app-1"
	from("PASSWORD", "db", "password")(i)
	as("app")(i)
	if err := c.client.Create(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	c.waits("web", "parameter PASSWORD: no permission to read Secret db")
	c.barrier.Wait(t)
	if leaks := c.leaks("hunter22"); len(leaks) > 0 || c.now("web").Status.Execution != nil {
		t.Errorf("%v, %+v", leaks, c.now("web").Status.Execution)
	}
}
