package plans_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestAPackageOfOtherShapes is installed, changed, backed up, restored and removed as it is:
// with nodes that loops over parameters make, kinds of its own, objects of the whole cluster,
// every function of templates, scripts of 200 KB, phases without steps and steps without
// tasks, plans that run by hand only, and no plan upgrade.
func TestAPackageOfOtherShapes(t *testing.T) {
	c := newCluster(t)
	c.provision()
	c.manage()
	from := "testdata/packages/column"
	verifies(t, from, "no problems found")
	certificate, key, err := cert.GenerateSelfSignedCertKey("column", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	secrets := " -p CA_CERT=" + base64.StdEncoding.EncodeToString(certificate) + " -p CA_KEY=" + base64.StdEncoding.EncodeToString(key)
	c.fails("package install "+from+" db -p CLUSTER_NAME=one", "spec.parameters.CA_CERT")
	c.says("package install "+from+" db -p CLUSTER_NAME=one"+secrets+" --wait --timeout 5m", "operatorversion/store-0.1.0 created", "plan deploy COMPLETE")
	c.columns("dc1=2")
	c.has(map[string]client.Object{
		"db-coordinating": &appsv1.Deployment{}, "db-master": &appsv1.Deployment{}, "db-agent": &appsv1.DaemonSet{}, "db-repair": &batchv1.CronJob{},
		"db": &networkingv1.Ingress{}, "db-exporter": &corev1.Service{}, "shared-store": &v1beta1.Instance{},
	})
	c.has(map[string]client.Object{"db": &autoscalingv2.HorizontalPodAutoscaler{}, "shared-store": &corev1.ConfigMap{}})
	if n := len(c.data("db-scripts")["long.sh"]); n < 200_000 {
		t.Errorf("the script has %d bytes", n)
	}
	if got := c.data("db-functions")["versions"]; got != "[3,true]" {
		t.Errorf("the functions for versions make %s", got)
	}

	more := t.TempDir() + "/more.yaml"
	write(t, more, "TOPOLOGY: [{datacenter: dc1, nodes: 1, racks: []}, {datacenter: dc2, nodes: 1, racks: [{rack: r2}]}]\nOPTIONS: YTogYgo=\n")
	c.says("package update instance/db -P "+more+" --wait --timeout 5m", "plan update COMPLETE")
	c.columns("dc1=1 dc2=1")
	if got := c.data("db-dc2")["node.yaml"]; !strings.Contains(got, "seeds: db-dc1-0,db-dc2-0\n") || !strings.Contains(got, "- rack: r2\n") || !strings.HasSuffix(got, "a: b\n") {
		t.Errorf("the nodes of dc2 run with\n%s", got)
	}
	c.says("package update instance/db -p EXPORTER=false --wait --timeout 5m", "plan exporter COMPLETE")
	if err := c.get(&corev1.Service{}, "db-exporter"); !apierrors.IsNotFound(err) {
		t.Errorf("what was switched off exists: %v", err)
	}

	jobs := map[string]bool{}
	for _, plan := range []string{"backup", "backup", "restore"} {
		c.says("plan trigger db "+plan+" --wait --timeout 5m", "plan "+plan+" COMPLETE")
		uid, ran := c.job("db-backup", "PLAN")
		jobs[uid] = true
		if !strings.HasPrefix(ran, plan+".") {
			t.Errorf("the Job is of %s and not of plan %s", ran, plan)
		}
	}
	if len(jobs) != 3 {
		t.Errorf("%d Jobs ran", len(jobs))
	}
	c.has(map[string]client.Object{"db-coordinating": &appsv1.Deployment{}})

	next := changed(t, from, map[string]string{"operator.yaml": "operatorVersion: 1.2.0|operatorVersion: 1.3.0", "templates/roles/data.yaml": "column:1|column:2"})
	c.says("package upgrade instance/db "+next+" --yes --wait --timeout 5m", "plan update COMPLETE")
	c.says("package uninstall instance/db --yes --wait --timeout 2m", "instance/db deleted")
	c.gone(&v1beta1.Instance{}, "db")
}

// columns checks the nodes of each data center, and that the cluster has what is not of a
// namespace.
func (c *cluster) columns(nodes string) {
	c.t.Helper()
	space := &unstructured.Unstructured{}
	space.SetGroupVersionKind(schema.GroupVersionKind{Group: c.namespace + ".example.com", Version: "v1", Kind: "Keyspace"})
	if err := c.get(space, "db"); err != nil {
		c.t.Fatal(err)
	}
	for node := range strings.FieldsSeq(nodes) {
		name, want, _ := strings.Cut(node, "=")
		set := &appsv1.StatefulSet{}
		if err := c.get(set, "db-"+name); err != nil || fmt.Sprint(set.Status.ReadyReplicas) != want {
			c.t.Errorf("%s has %d nodes that are ready, %v", name, set.Status.ReadyReplicas, err)
		}
		if got, _, _ := unstructured.NestedInt64(space.Object, "spec", "replication", name); fmt.Sprint(got) != want {
			c.t.Errorf("the custom resource has %d nodes of %s", got, name)
		}
	}
	for _, obj := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &schedulingv1.PriorityClass{}} {
		if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: c.namespace + "-db"}, obj); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *cluster) has(objects map[string]client.Object) {
	c.t.Helper()
	for name, obj := range objects {
		if err := c.get(obj, name); err != nil {
			c.t.Error(err)
		}
	}
}
