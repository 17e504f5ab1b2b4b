package plans_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// provision binds claims to volumes until the end of the test, as a provisioner does.
func (c *cluster) provision() {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.provisionUntil(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
}

func (c *cluster) provisionUntil(ctx context.Context) error {
	for {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := c.client.List(ctx, claims, client.InNamespace(c.namespace)); err != nil && ctx.Err() == nil {
			return err
		}
		for i := range claims.Items {
			if err := c.client.Create(ctx, volumeFor(&claims.Items[i])); err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return c.removeVolumes()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// removeVolumes removes what has no namespace, and would outlive the test.
func (c *cluster) removeVolumes() error {
	return c.client.DeleteAllOf(context.Background(), &corev1.PersistentVolume{}, client.MatchingLabels{"test": c.namespace})
}

func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace + "-" + claim.Name, Labels: map[string]string{"test": claim.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		},
	}
}

// job returns a Job that has ended well, and what its first container has as a variable.
func (c *cluster) job(name, variable string) (uid, value string) {
	c.t.Helper()
	j := &batchv1.Job{}
	if err := c.get(j, name); err != nil {
		c.t.Fatal(err)
	}
	if j.Status.Succeeded != 1 {
		c.t.Errorf("Job %s succeeded %d times", name, j.Status.Succeeded)
	}
	for _, e := range j.Spec.Template.Spec.Containers[0].Env {
		if e.Name == variable {
			value = e.Value
		}
	}
	return string(j.UID), value
}

// TestTheLedger runs all plans of the example that has data: what it keeps stays through all
// of them, and each backup is a Job of its own.
func TestTheLedger(t *testing.T) {
	c := newCluster(t)
	c.provision()
	c.manage()
	verifies(t, "../../examples/packages/ledger", "no problems found")
	c.says("package install ../../examples/packages/ledger books -p NODES=2 --wait --timeout 5m", "plan deploy COMPLETE")
	kept := c.claims()
	if len(kept) != 3 {
		t.Fatalf("the claims are %v", kept)
	}
	c.says("plan trigger books backup --wait --timeout 5m", "plan backup COMPLETE")
	first, name := c.job("books-backup", "NAME")
	if name != "first" {
		t.Errorf("the backup is named %q", name)
	}
	c.says("package update instance/books -p BACKUP_NAME=second --wait --timeout 5m", "plan backup runs (BACKUP_NAME)", "plan backup COMPLETE")
	second, name := c.job("books-backup", "NAME")
	if name != "second" || second == first {
		t.Errorf("the second backup is the Job of the first, with the name %q", name)
	}
	c.says("plan trigger books restore --wait --timeout 5m", "plan restore COMPLETE")
	if _, name := c.job("books-restore", "NAME"); name != "second" {
		t.Errorf("%q is restored", name)
	}
	c.says("package update instance/books -p BACKUP_SCHEDULED=true -p ENTRIES=[a,b] --wait --timeout 5m", "plan update COMPLETE")
	if err := c.get(&batchv1.CronJob{}, "books-backup"); err != nil {
		t.Error(err)
	}
	next := changed(t, "../../examples/packages/ledger", map[string]string{"operator.yaml": "operatorVersion: 0.1.0|operatorVersion: 0.2.0", "templates/statefulset.yaml": "name: http\n|name: web\n"})
	c.says("package upgrade instance/books "+next+" --yes --wait --timeout 5m", "plan upgrade COMPLETE")
	third, _ := c.job("books-backup", "NAME")
	set := &appsv1.StatefulSet{}
	if err := c.get(set, "books"); err != nil || third == second || set.Spec.Template.Spec.Containers[0].Ports[0].Name != "web" {
		t.Errorf("the upgrade saved nothing first, or changed nothing: %v", err)
	}
	if after := c.claims(); fmt.Sprint(after) != fmt.Sprint(kept) {
		t.Errorf("the claims were %v and are %v", kept, after)
	}
	c.rests("books", "deploy Complete, backup Complete, backup Complete, restore Complete, update Complete, upgrade Complete")
	c.says("package uninstall instance/books --yes --wait --timeout 2m", "instance/books deleted")
	c.gone(&v1beta1.Instance{}, "books")
}

// claims are the claims of the namespace, each with its uid.
func (c *cluster) claims() map[string]string {
	c.t.Helper()
	list, all := &corev1.PersistentVolumeClaimList{}, map[string]string{}
	c.list(list)
	for i := range list.Items {
		all[list.Items[i].Name] = string(list.Items[i].UID)
	}
	return all
}
