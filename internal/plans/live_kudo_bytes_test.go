package plans_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// The files in testdata/kudo are what KUDO's own types marshal, byte by byte: empty fields
// that they always write, null for what is nil, and the order of their fields.

// TestBytesOfKUDO sends them to the API server, which accepts them with no unknown field,
// and deploys the package, which has every kind of task, of parameter and of plan.
func TestBytesOfKUDO(t *testing.T) {
	c := newCluster(t)
	c.files = filesOf{"/tmp/cert.pem": "PEM", "/tmp/env": "A=1\n  B=x y \n"}
	c.manage()
	for _, name := range []string{"operator", "operatorversion", "dependency", "instance"} {
		c.send(name)
	}
	c.rests("my-app", "deploy Complete")
	want := map[string]string{
		"plain": "4", "string": "", "integer": "3", "number": "0.5", "boolean": "true", "array": "<a><b>", "map": "b", "fixed": "x", "one": "a",
	}
	if got := c.data("types"); !maps.Equal(got, want) {
		t.Errorf("the parameters are %q, not %q", got, want)
	}
	cert, env := "myapp.deploy.main1.certs1.gencerts.certificate", "myapp.deploy.main1.certs1.gencerts.envvars"
	if got := c.data("use"); got["cert"] != cert || got["env"] != env {
		t.Errorf("the files of the Pipe are named %q", got)
	}
	secret := &corev1.Secret{}
	if err := c.get(secret, cert); err != nil || string(secret.Data["cert.pem"]) != "PEM" {
		t.Errorf("Pipe kept %q, %v", secret.Data, err)
	}
	if got := c.data(env); got["A"] != "1" || got["B"] != "x y " {
		t.Errorf("Pipe kept %q", got)
	}
	if got := c.data("db")["size"]; got != "3" {
		t.Errorf("the child has size %q", got)
	}
	for _, plan := range []string{"backup", "empty", "update", "upgrade"} {
		before := c.history("my-app")
		c.change("my-app", ask(plan))
		c.rests("my-app", before+", "+plan+" Complete")
	}
	c.remove(&v1beta1.Instance{}, "my-app")
	c.gone(&v1beta1.Instance{}, "my-app")
}

// TestStatusOfKUDO: an Instance that KUDO has deployed, with the status that KUDO wrote, is
// complete, and no plan runs.
func TestStatusOfKUDO(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"operator", "operatorversion", "instance"} {
		c.send(name)
	}
	i := c.now("my-app")
	status, err := os.ReadFile("testdata/kudo/status.json")
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"kind":"Instance","apiVersion":"kudo.dev/v1beta1","metadata":{"name":"my-app","namespace":%q,"resourceVersion":%q},"spec":{"operatorVersion":{"name":"app-3.4-0.1.0"},"parameters":{"PLAIN":"4"},"planExecution":{}},"status":%s}`,
		c.namespace, i.ResourceVersion, status)
	c.request(http.MethodPut, "instances/my-app/status", body)
	c.manage()
	c.rests("my-app", "")
	if got := c.now("my-app").Status; got.LastAppliedInstanceSpec == nil || got.PlanStatus["update"].Message != "A fatal error" {
		t.Errorf("%+v", got)
	}
}

// send creates the object of a file.
func (c *cluster) send(name string) {
	c.t.Helper()
	text, err := os.ReadFile("testdata/kudo/" + name + ".json")
	if err != nil {
		c.t.Fatal(err)
	}
	resource := map[string]string{"operator": "operators", "operatorversion": "operatorversions", "dependency": "operatorversions", "instance": "instances"}[name]
	c.request(http.MethodPost, resource, strings.ReplaceAll(string(text), "NAMESPACE", c.namespace))
}

// request sends bytes as they are, and fails if the API server does not accept them.
func (c *cluster) request(method, path, body string) {
	c.t.Helper()
	server, err := rest.HTTPClientFor(c.cp.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	url := fmt.Sprintf("%s/apis/kudo.dev/v1beta1/namespaces/%s/%s?fieldValidation=Strict", c.cp.Config().Host, c.namespace, path)
	request, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := server.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode >= http.StatusMultipleChoices {
		c.t.Fatalf("%s: %s", path, text)
	}
}
