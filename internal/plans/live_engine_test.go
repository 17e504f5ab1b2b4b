package plans_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestAPackageWithKindsOfItsOwn has the shape of Spark's: kinds and roles of the whole cluster,
// which stay when it is uninstalled and are taken over when it is installed again.
func TestAPackageWithKindsOfItsOwn(t *testing.T) {
	c := newCluster(t)
	c.files = filesOf{"/tmp/tls.crt": "CERT", "/tmp/ca.crt": "AUTHORITY"}
	c.provision()
	c.manage()
	from := "testdata/packages/engine"
	verifies(t, from, "1 warning")
	c.says("package install "+from+" spark --wait --timeout 5m", "plan deploy COMPLETE")
	c.has(map[string]client.Object{"engine": &appsv1.Deployment{}, "engine-init": &batchv1.Job{}, "engine-webhook": &corev1.Service{}, "job-role-binding": &rbacv1.RoleBinding{}})
	c.clusterHas(&rbacv1.ClusterRole{}, c.namespace+"-engine-cr")
	c.clusterHas(&rbacv1.ClusterRoleBinding{}, c.namespace+"-engine-crb")
	c.apply(fmt.Sprintf("{apiVersion: %s.engine.example.com/v1beta2, kind: EngineApplication, metadata: {name: pi}, spec: {type: Scala}}", c.namespace))
	pod := &c.deployment("engine").Spec.Template.Spec
	secret := &corev1.Secret{}
	if err := c.get(secret, pod.Volumes[0].Secret.SecretName); err != nil || string(secret.Data["tls.crt"]) != "CERT" {
		t.Errorf("the certificate is %q, %v", secret.Data, err)
	}
	if got := c.data(pod.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name)["ca.crt"]; got != "AUTHORITY" {
		t.Errorf("the authority is %q", got)
	}

	history := map[string]client.Object{"spark-history": &corev1.PersistentVolumeClaim{}, "spark-history-server": &appsv1.Deployment{}}
	c.says("package update instance/spark -p enableHistory=true --wait --timeout 5m", "plan history runs (enableHistory)", "plan history COMPLETE")
	c.has(history)
	c.says("package update instance/spark -p enableHistory=false --wait --timeout 5m", "plan history COMPLETE")
	for name, obj := range history {
		c.gone(obj, name)
	}
	c.says("package update instance/spark -p logLevel=3 --wait --timeout 5m", "plan deploy COMPLETE")

	c.says("package update instance/spark -p jobNamespace=jobs --wait --timeout 5m", "plan deploy COMPLETE")
	c.has(map[string]client.Object{"job-role": &rbacv1.Role{}}) // all that has a namespace is in that of the Instance

	c.says("package update instance/spark -p enableMetrics=true", "note: ServiceMonitor engine-monitor is not checked: the API server does not know kind ServiceMonitor of monitoring.coreos.com/v1; install what defines it")
	c.waits("spark", "ServiceMonitor")
	c.fails("package update instance/spark -p logLevel=4", "error: instance/spark: plan deploy is running, so nothing can be changed yet; to see why it has not ended: spillway explain instance/spark -n "+c.namespace)
	c.says("plan abandon spark --wait")
	c.says("package update instance/spark --unset enableMetrics --wait --timeout 5m", "plan deploy COMPLETE")
	next := changed(t, from, map[string]string{"operator.yaml": "operatorVersion: 1.1.0|operatorVersion: 1.2.0", "params.yaml": "default: 3.0.0-1.1.0|default: 3.0.0-1.2.0"})
	stays := changed(t, next, map[string]string{"templates/webhook-init.yaml": "  labels:\n|  annotations:\n    spillway.dev/on-immutable: fail\n  labels:\n"})
	c.fails("package upgrade instance/spark "+stays+" --yes", "plan deploy would fail: Job engine-init: an immutable field would change (spec.template: field is immutable)")
	c.fails("package diff instance/spark "+stays, "plan deploy would fail")
	c.says("package upgrade instance/spark "+next+" --yes --wait --timeout 5m", "Job engine-init would be deleted and created again", "plan deploy COMPLETE")
	if got := c.deployment("engine").Spec.Template.Spec.Containers[0].Image; got != "engine:3.0.0-1.2.0" {
		t.Errorf("the engine runs %s", got)
	}

	c.says("package uninstall instance/spark --yes --wait --timeout 2m", "instance/spark deleted")
	c.gone(&appsv1.Deployment{}, "engine")
	c.clusterHas(&rbacv1.ClusterRole{}, c.namespace+"-engine-cr")
	c.says("package install "+from+" spark --wait --timeout 5m", "plan deploy COMPLETE")
	c.says("package uninstall instance/spark --yes --wait --timeout 2m", "instance/spark deleted")
	c.gone(&v1beta1.Instance{}, "spark")
}

// clusterHas checks for an object that is in no namespace.
func (c *cluster) clusterHas(obj client.Object, name string) {
	c.t.Helper()
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Name: name}, obj); err != nil {
		c.t.Error(err)
	}
}
