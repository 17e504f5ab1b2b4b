package plans_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPackageAsPeopleWriteThem is installed, changed, upgraded and removed as it is: with
// fields that no kind has, lists without items, octal numbers, numbers as versions, templates
// that make nothing, and Jobs that are named by the plan and deleted at its end.
func TestAPackageAsPeopleWriteThem(t *testing.T) {
	c := newCluster(t)
	c.provision()
	c.manage()
	from := "testdata/packages/untidy"
	c.says("package install "+from+" db --dry-run=server", "statefulset/untidy applied by plan deploy", "deployment/db-load applied")
	c.says("package install "+from+" db --wait --timeout 5m", "operatorversion/untidy-5.7-0.1.0 created", "plan deploy COMPLETE")
	if got := c.data("db-settings")["run.sh"]; !strings.Contains(got, "exec node --name=db --count=4 --app=5.7") {
		t.Errorf("the nodes run\n%s", got)
	}
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "untidy"); err != nil {
		t.Fatal(err)
	}
	if mode := set.Spec.Template.Spec.Volumes[0].ConfigMap.DefaultMode; mode == nil || *mode != 0o777 {
		t.Errorf("the script has the mode %v", mode)
	}
	if set.Status.ReadyReplicas != 2 || len(set.Spec.VolumeClaimTemplates) != 0 {
		t.Errorf("%d nodes are ready, with %v", set.Status.ReadyReplicas, set.Spec.VolumeClaimTemplates)
	}
	c.lacks("deploy-job", &batchv1.Job{})
	c.lacks("db-0-outside", &corev1.Service{})
	c.has(map[string]client.Object{"db-webhook": &corev1.Service{}, "db-load": &appsv1.Deployment{}})

	c.says("package update instance/db -p outside=true -p enableWebhook=false --wait --timeout 5m", "plan deploy COMPLETE")
	c.has(map[string]client.Object{"db-0-outside": &corev1.Service{}, "db-1-outside": &corev1.Service{}})
	c.lacks("db-webhook", &corev1.Service{})
	c.says("plan trigger db backup --wait --timeout 5m", "plan backup COMPLETE")
	c.lacks("backup-job", &batchv1.Job{})
	c.has(map[string]client.Object{"backup": &corev1.PersistentVolumeClaim{}})
	c.fails("package update instance/db -p persistent=true --wait --timeout 5m", "not-allowed")
	c.says("package update instance/db --unset persistent -p NODES=1 --wait --timeout 5m", "plan deploy COMPLETE")

	next := changed(t, from, map[string]string{"operator.yaml": `operatorVersion: "0.1.0"|operatorVersion: "0.2.0"`, "templates/load.yaml": "load:1|load:2"})
	c.says("package diff instance/db "+next, "plan deploy would run", "+        image: load:2")
	c.says("package upgrade instance/db "+next+" --yes --wait --timeout 5m", "plan deploy COMPLETE")
	c.says("package uninstall instance/db --yes --wait --timeout 2m", "instance/db deleted")
}

// lacks checks that an object does not exist.
func (c *cluster) lacks(name string, obj client.Object) {
	c.t.Helper()
	if err := c.get(obj, name); !apierrors.IsNotFound(err) {
		c.t.Errorf("%T %s exists: %v", obj, name, err)
	}
}
