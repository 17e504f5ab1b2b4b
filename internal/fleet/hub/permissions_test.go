package hub_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/notify"
)

// TestEveryPermissionIsUsedAndNoOtherIsNeeded runs the story with nothing but the
// generated role, in namespaced mode, and compares what was granted with what was
// asked for.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.RulesOf(manager.RingFleet)
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	w.grant(user, rules)
	inj := fault.New()
	run := manager.Options{Rings: []string{manager.RingFleet}, Namespaces: w.options.Namespaces, Fleet: w.options, Gates: gates.Options{Off: true}, Notify: notify.Options{Off: true}}
	stop := w.barrier.Run(t, testenv.Shared().ConfigAs(user), inj, run)
	w.budget("shared", `maxClusters: 9`)
	w.tell(noFault)
	w.apply(model.KindBootstrap, "v1", everywhere)
	w.eventually(func() error { return w.remotes("a:v1", "b:v1") })
	for _, tag := range []string{"v4", "v5", "v4"} { // and the gate of an earlier rollout is deleted
		w.gateIsReached(tag)
	}
	w.orphan("v3", templateOf("v3"))           // a revision that is taken over
	for _, tag := range []string{"v3", "v6"} { // and a revision that is not needed
		w.module(tag, everywhere+`, revisionHistoryLimit: 0`)
		w.complete("a:" + tag + " b:" + tag + " c:" + tag)
	}

	testenv.Exactly(t, testenv.Permissions(rules), inj.Requests)
	stop()
}

func (w *world) grant(user string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	w.create(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	)
}
