package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	described "github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// devFirst has the namespaces with the label env: dev first.
const devFirst = "{objects: [{kind: Secret, name: db}], namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}}]}"

// spread is a cluster with a Deployment app in each namespace, which uses a Secret db of its own, and with a policy
// that has stages of namespaces. The namespaces whose names begin with dev have the label env: dev.
func spread(t *testing.T, spec string, namespaces ...string) map[string]*world {
	t.Helper()
	return spreadWith(newCluster(t, namespaces...), spec, namespaces...)
}

func spreadWith(w *world, spec string, namespaces ...string) map[string]*world {
	t := w.t
	t.Helper()
	testenv.InstallKinds(t, w.client, policyKinds+"/spillway.dev_*.yaml")
	w.options.CoalesceWindow = 0
	w.spreadBy(spec)
	w.manage(func(o *manager.Options) { o.Gates.Off, o.Notify.Off = true, true })
	all := map[string]*world{}
	for _, namespace := range namespaces {
		all[namespace] = w.in(namespace)
		if strings.HasPrefix(namespace, "dev") {
			all[namespace].labeled("dev")
		}
		all[namespace].sharing("app")
	}
	w.barrier.Wait(t)
	return all
}

func (w *world) spreadBy(spec string) {
	w.t.Helper()
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: ClusterConfigPolicy\nmetadata: {name: spread}\nspec: " + spec)
}

// labeled gives the namespace the label env.
func (w *world) labeled(env string) {
	w.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"env":%q}}}`, env))
	if err := w.client.Patch(w.t.Context(), ns, patch); err != nil {
		w.t.Fatal(err)
	}
}

// crashLoops has the only Pod of a Deployment crash with the hash that this has now.
func (w *world) crashLoops(name string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name + "-1-1", Labels: map[string]string{"app": name}, Annotations: map[string]string{native + "config-hash": w.hash(name)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-1", UID: "1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := w.client.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	if err := w.client.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	w.becomes(false, name)
}

// hashes are those of the Deployment app of some namespaces.
func hashes(all map[string]*world) map[string]string {
	is := map[string]string{}
	for namespace, w := range all {
		is[namespace] = w.hash("app")
	}
	return is
}

// changed are the namespaces in which the Deployment app has another hash than before, once the managers rest.
func changedSince(t *testing.T, all map[string]*world, before map[string]string) []string {
	t.Helper()
	var names []string
	for namespace, w := range all {
		w.barrier.Wait(t)
		if w.hash("app") != before[namespace] {
			names = append(names, namespace)
		}
	}
	slices.Sort(names)
	return names
}

func everywhere(all map[string]*world, value string) {
	for _, w := range all {
		w.secret("db", "p", value)
	}
}

// A content gets to the namespaces of the stage dev first, and to the rest once it works there; a manager that begins in
// the middle does the same. One that fails there gets to no other namespace, even after it was reverted in dev.
func TestNamespacesAreStages(t *testing.T) {
	all := spread(t, devFirst, "dev", "shop", "bank")
	dev, shop, bank := all["dev"], all["shop"], all["bank"]
	before := hashes(all)
	bank.secret("db", "p", "next")
	bank.saysWhy("app", "WaitingForPrevious", "ClusterConfigPolicy spread holds Secret db@", "namespace stage dev is not complete: namespace dev has another content")
	everywhere(all, "next")
	dev.hashed("app", before["dev"])
	dev.becomes(false, "app")
	shop.saysWhy("app", "WaitingForPrevious", "namespace stage dev is not complete")
	if r := shop.record("Secret", "db"); r == nil || r.Rollout.Causes[0].About == nil || r.Rollout.Causes[0].About.Name != "spread" {
		t.Errorf("recorded is %+v", r)
	}
	asked, err := explain.Explain(t.Context(), explain.World{Client: shop.client, Options: shop.options}, described.Ref{Kind: "Deployment", Namespace: "shop", Name: "app"})
	if err != nil || !strings.Contains(asked.Links[0].Sentence, "namespace stage dev") || asked.Links[0].Next != "kubectl describe clusterconfigpolicy/spread" {
		t.Errorf("explain says %+v, %v", asked.Links[0], err)
	}
	shop.halt()
	shop.manage()
	shop.barrier.Wait(t)
	if got := changedSince(t, all, before); !slices.Equal(got, []string{"dev"}) {
		t.Errorf("%v have it", got)
	}
	dev.becomes(true, "app")
	for _, w := range []*world{shop, bank} {
		w.hashed("app", before[w.namespace])
		w.becomes(true, "app")
	}

	before = hashes(all)
	everywhere(all, "bad")
	bad := dev.hashed("app", before["dev"])
	dev.crashLoops("app")
	shop.saysWhy("app", "ConfigFailed", "ClusterConfigPolicy spread holds Secret db@", "dev/deployment/app failed: 1 of 1 Pods CrashLoopBackOff")
	dev.secret("db", "p", "next")
	dev.hashed("app", bad)
	dev.becomes(true, "app")
	shop.halt()
	shop.manage()
	shop.barrier.Wait(t)
	shop.saysWhy("app", "ConfigFailed", "dev/deployment/app failed")
	delete(all, "dev")
	if got := changedSince(t, all, before); len(got) > 0 {
		t.Errorf("%v have the bad value", got)
	}
}

// A stage that selects nothing holds, and so does one of which nothing uses the object, until labels or selector are
// corrected; a policy that a user of a namespace writes does not let it go.
func TestAStageWithoutNamespaces(t *testing.T) {
	all := spread(t, strings.Replace(devFirst, "env: dev", "env: dve", 1), "dev", "shop")
	before := hashes(all)
	everywhere(all, "next")
	for _, w := range all {
		w.saysWhy("app", "WaitingForPrevious", "namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it")
	}
	shop := all["shop"]
	shop.apply("apiVersion: spillway.dev/v1alpha1\nkind: ConfigPolicy\nmetadata: {name: own, namespace: shop}\nspec: {priority: 9}")
	shop.eventually(func() error {
		p := &v1alpha1.ConfigPolicy{}
		if err := shop.get(p, "own"); err != nil {
			return err
		}
		return want("Complete", p.Status.Phase)
	})
	if got := changedSince(t, all, before); len(got) > 0 {
		t.Errorf("%v have it", got)
	}
	shop.labeled("dve")
	shop.hashed("app", before["shop"])
	shop.becomes(true, "app")
	all["dev"].hashed("app", before["dev"])
}

// A content that is copied into many namespaces has one canary.
func TestManyNamespacesHaveOneCanary(t *testing.T) {
	namespaces := []string{"dev"}
	for i := range 20 {
		namespaces = append(namespaces, fmt.Sprint("team", i))
	}
	all := spread(t, devFirst, namespaces...)
	before := hashes(all)
	everywhere(all, "bad")
	all["dev"].hashed("app", before["dev"])
	all["dev"].crashLoops("app")
	for _, namespace := range []string{"team0", "team19"} {
		all[namespace].saysWhy("app", "ConfigFailed", "dev/deployment/app failed")
	}
	if got := changedSince(t, all, before); !slices.Equal(got, []string{"dev"}) {
		t.Errorf("%v have the bad value", got)
	}
	bad := all["dev"].hash("app")
	everywhere(all, "fine")
	all["dev"].hashed("app", bad)
	all["dev"].becomes(true, "app")
	for namespace, w := range all {
		w.hashed("app", before[namespace])
	}
}

// The permissions of the manager are enough. Without those on namespaces the policy holds what it is for, and says so.
func TestTheLabelsOfNamespacesMustBeRead(t *testing.T) {
	o := manifests.Default(manager.RingConfig)
	rules, err := o.RulesOfRole("spillway")
	if err != nil {
		t.Fatal(err)
	}
	isOfNamespaces := func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "namespaces") }
	for name, rules := range map[string][]rbacv1.PolicyRule{"all": rules, "not namespaces": slices.DeleteFunc(slices.Clone(rules), isOfNamespaces)} {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t, "dev", "shop")
			user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "manager"}
			for _, obj := range []client.Object{
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Rules: rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "manager"}, Subjects: []rbacv1.Subject{user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "manager"}},
			} {
				if err := w.client.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			w.as = rest.CopyConfig(w.as)
			w.as.Impersonate.UserName = user.Name
			all := spreadWith(w, devFirst, "dev", "shop")
			before := hashes(all)
			everywhere(all, "next")
			if name == "all" {
				all["dev"].hashed("app", before["dev"])
				all["shop"].saysWhy("app", "WaitingForPrevious", "namespace stage dev is not complete")
				return
			}
			for _, w := range all {
				w.saysWhy("app", "NotPermitted", "grant the manager list and watch on namespaces")
			}
		})
	}
}
