package plans_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestAPackageWithParts has what those of Kafka and Cassandra have and no other: parts that are
// switched, one object for each node, and a ConfigMap that Pods fill in, which stays as they
// wrote it.
func TestAPackageWithParts(t *testing.T) {
	c := newCluster(t)
	c.manage()
	from := "testdata/packages/wide"
	verifies(t, from, "1 warning")
	c.says("package install "+from+" cass --wait --timeout 5m", "plan deploy COMPLETE")
	lock := &corev1.ConfigMap{}
	if err := c.get(lock, "cass-topology-lock"); err != nil {
		t.Fatal(err)
	}
	lock.Data = map[string]string{"cass-node-0": "10.0.0.1"}
	if err := c.client.Update(t.Context(), lock); err != nil {
		t.Fatal(err)
	}

	more := t.TempDir() + "/more.yaml"
	write(t, more, "NODE_COUNT: 3\nNODE_TOLERATIONS: [{key: a, operator: Exists}]\nWORKLOAD: true\n")
	c.says("package update instance/cass -P "+more+" --wait --timeout 5m", "plan update COMPLETE")
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "cass-node"); err != nil || set.Status.ReadyReplicas != 3 || len(set.Spec.Template.Spec.Tolerations) != 1 {
		t.Errorf("%d nodes are ready, %v, %v", set.Status.ReadyReplicas, set.Spec.Template.Spec.Tolerations, err)
	}
	if got := c.data("cass-topology-lock")["cass-node-0"]; got != "10.0.0.1" {
		t.Errorf("what a Pod wrote is %q", got)
	}
	c.has(map[string]client.Object{"cass-producer": &appsv1.Deployment{}, "cass-consumer": &appsv1.Deployment{}})

	c.says("package update instance/cass -p OUTSIDE=true --wait --timeout 5m", "plan outside COMPLETE")
	c.says("package update instance/cass -p OUTSIDE_TYPE=NodePort --wait --timeout 5m", "plan outside COMPLETE")
	outside := &corev1.Service{}
	if err := c.get(outside, "cass-node-2-outside"); err != nil || outside.Spec.Type != corev1.ServiceTypeNodePort || outside.Spec.Ports[0].Port != 9099 {
		t.Errorf("the Service of a node is %v, %v", outside.Spec, err)
	}
	c.says("package update instance/cass -p NODE_COUNT=2 --wait --timeout 5m", "plan update COMPLETE")
	c.gone(&corev1.Service{}, "cass-node-2-outside")
	c.says("package update instance/cass -p OUTSIDE=false --wait --timeout 5m", "plan outside COMPLETE")
	c.gone(&corev1.Service{}, "cass-node-0-outside")

	parts := map[string]client.Object{"cass-connect": &appsv1.Deployment{}, "cass-connect-svc": &corev1.Service{}, "cass-connect-config": &corev1.ConfigMap{}, "cass-connect-setup": &batchv1.Job{}}
	c.says("package update instance/cass -p CONNECT=true --wait --timeout 5m", "plan connect COMPLETE")
	c.has(parts)
	c.says("package update instance/cass -p CONNECTORS=mine --wait --timeout 5m", "Job cass-connect-setup would be deleted and created again", "plan connect COMPLETE")
	c.says("package update instance/cass -p CONNECT=false --wait --timeout 5m", "plan connect COMPLETE")
	for name, obj := range parts {
		c.gone(obj, name)
	}

	c.says("package update instance/cass -p BACKUP_NAME=one --wait --timeout 5m", "plan backup COMPLETE")
	c.says("package update instance/cass -p BACKUP_NAME=two --wait --timeout 5m", "plan backup COMPLETE")
	c.has(map[string]client.Object{"backup-node-0": &batchv1.Job{}, "backup-node-1": &batchv1.Job{}})

	next := changed(t, from, map[string]string{"operator.yaml": `operatorVersion: "1.3.3"|operatorVersion: "1.4.0"`, "templates/workload.yaml": `list "producer" "consumer"|list "producer"`})
	c.says("package upgrade instance/cass "+next+" --yes --wait --timeout 5m", "plan update COMPLETE")
	c.gone(&appsv1.Deployment{}, "cass-consumer")
	c.says("package uninstall instance/cass --yes --wait --timeout 2m", "instance/cass deleted")
	c.gone(&v1beta1.Instance{}, "cass")
}
