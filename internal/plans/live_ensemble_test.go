package plans_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestAPackageWithAJobThatStays has the shape of ZooKeeper's: what a plan leaves is found by
// the next one, and a Job that has ended runs again with a new template.
func TestAPackageWithAJobThatStays(t *testing.T) {
	c := newCluster(t)
	c.provision()
	c.manage()
	from := "testdata/packages/ensemble"
	verifies(t, from, "no problems found")
	c.says("package install "+from+" zk --wait --timeout 5m", "operatorversion/ensemble-3.4.14-0.3.0 created", "plan deploy COMPLETE")
	c.has(map[string]client.Object{"zk-hs": &corev1.Service{}, "zk-cs": &corev1.Service{}, "zk-pdb": &policyv1.PodDisruptionBudget{}})
	if mode := c.members(3).Spec.Template.Spec.Volumes[0].ConfigMap.DefaultMode; mode == nil || *mode != 0o777 {
		t.Errorf("the script has the mode %v", mode)
	}
	first, servers := c.job("zk-check", "CONN")
	if servers != "zk-ensemble-0.zk-hs:2181,zk-ensemble-1.zk-hs:2181,zk-ensemble-2.zk-hs:2181" {
		t.Errorf("the Job checks %q", servers)
	}

	c.says("plan trigger zk check --wait --timeout 5m", "plan check COMPLETE")
	second, _ := c.job("zk-check", "CONN")
	if second == first {
		t.Error("the plan check has left the former Job")
	}
	c.says("package update instance/zk -p NODE_COUNT=4 --wait --timeout 5m", "plan resize runs (NODE_COUNT)", "plan resize COMPLETE")
	c.members(4)
	c.says("package update instance/zk -p MEMORY=32Mi --wait --timeout 5m", "plan deploy COMPLETE")
	if third, _ := c.job("zk-check", "CONN"); third == second {
		t.Error("the plan resize has left the former Job")
	}
	c.fails("package update instance/zk -p DISK_SIZE=2Gi --wait --timeout 5m", "not-allowed")
	c.says("package update instance/zk --unset DISK_SIZE --wait --timeout 5m")

	c.says("package update instance/zk -p CHECK_IMAGE=ensemble-check:3 --wait --timeout 5m", "Job zk-check would be deleted and created again", "plan deploy COMPLETE")
	c.says("package update instance/zk --unset CHECK_IMAGE --wait --timeout 5m", "plan deploy COMPLETE")
	next := changed(t, from, map[string]string{"operator.yaml": `operatorVersion: "0.3.0"|operatorVersion: "0.4.0"`, "params.yaml": "ensemble-check:1|ensemble-check:2"})
	undone := changed(t, next, map[string]string{"operator.yaml": "            tasks:\n              - check\n|            tasks:\n              - check-cleanup\n              - check\n"})
	c.fails("package upgrade instance/zk "+undone+" --yes", "plan deploy would fail: task check-cleanup deletes Job zk-check, which task check of the same step applies; give each of them a step of its own")
	corrected := changed(t, next, map[string]string{"operator.yaml": "        strategy: parallel\n        steps:\n          - name: check\n|        strategy: serial\n        steps:\n          - name: cleanup\n            tasks:\n              - check-cleanup\n          - name: check\n"})
	c.says("package upgrade instance/zk "+corrected+" --yes --wait --timeout 5m", "plan deploy COMPLETE")
	job := &batchv1.Job{}
	if err := c.get(job, "zk-check"); err != nil || job.Spec.Template.Spec.Containers[0].Image != "ensemble-check:2" {
		t.Errorf("the Job runs %v, %v", job.Spec.Template.Spec.Containers, err)
	}
	c.says("package uninstall instance/zk --yes --wait --timeout 2m", "instance/zk deleted")
	c.gone(&v1beta1.Instance{}, "zk")
}

// members checks that so many nodes are ready.
func (c *cluster) members(count int32) *appsv1.StatefulSet {
	c.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "zk-ensemble"); err != nil || set.Status.ReadyReplicas != count {
		c.t.Errorf("%d nodes are ready, %v", set.Status.ReadyReplicas, err)
	}
	return set
}
