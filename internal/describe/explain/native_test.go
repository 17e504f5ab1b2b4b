package explain_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// explained is the chain of an object in a cluster that has some objects.
func explained(t *testing.T, ref describe.Ref, objects ...client.Object) explain.Chain {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return noon }
	store := apiserver.New(scheme, now)
	for _, obj := range objects {
		if err := store.Seed(obj); err != nil {
			t.Fatal(err)
		}
	}
	found, err := explain.Explain(t.Context(), explain.World{Client: store, Options: config.Options{Now: now}}, ref)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}
}

// web is a Pod on node n1 with one container, as a test changes it.
func web(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta("web"), Spec: corev1.PodSpec{
		NodeName: "n1", SchedulerName: "default-scheduler", Containers: []corev1.Container{{Name: "app", Image: "app:v2"}},
	}}
	p.Status.Phase = corev1.PodPending
	change(p)
	return p
}

func node(status corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: "KubeletStopped"}}
	return n
}

// waits makes the container wait, for a reason of the kubelet.
func waits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

// ends makes the container wait after it has ended.
func ends(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		waits("CrashLoopBackOff", "")(p)
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	}
}

// unscheduled leaves the Pod without a node, for a reason of the scheduler.
func unscheduled(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = ""
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
	}
}

func runs(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func both(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// Each way in which a Pod does not serve has its own root, reason and command.
func TestPods(t *testing.T) {
	needsDB := func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password",
		}}}}
	}
	db := &corev1.Secret{ObjectMeta: meta("db"), Data: map[string][]byte{"user": nil}}
	for name, c := range map[string]struct {
		change         func(*corev1.Pod)
		others         []client.Object
		root, sentence string
		reason         rollout.Reason
		next           string
	}{
		"ready": {
			change: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			},
			root: "pod/web", sentence: "Pod web is ready",
		},
		"complete": {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, root: "pod/web", sentence: "Pod web is complete"},
		"evicted": {
			change: func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on memory."
			},
			root: "pod/web", sentence: "Pod web was evicted from node n1: The node was low on memory", reason: explain.ReasonEvicted, next: "kubectl describe node/n1",
		},
		"on a node that is lost": {
			change: runs, others: []client.Object{node(corev1.ConditionUnknown)},
			root: "node/n1", sentence: "Node n1 is not ready: KubeletStopped", reason: explain.ReasonNodeLost, next: "kubectl describe node/n1",
		},
		"on a node that is gone": {
			change: runs,
			root:   "node/n1", sentence: "Node n1 not found", reason: explain.ReasonNodeLost, next: "kubectl delete pod/web -n shop --force --grace-period=0",
		},
		"deleted, with a finalizer": {
			change: func(p *corev1.Pod) {
				p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{"acme.io/keep"}
			},
			others: []client.Object{node(corev1.ConditionTrue)},
			root:   "pod/web", sentence: "Pod web cannot be deleted: finalizer acme.io/keep is not removed yet", reason: explain.ReasonFinalizer,
		},
		"behind a scheduling gate": {
			change: func(p *corev1.Pod) {
				p.Spec.NodeName, p.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: "acme.io/quota"}}
			},
			root: "pod/web", sentence: "Pod web is waiting: scheduling gate acme.io/quota is not removed yet", reason: explain.ReasonGated,
		},
		"without config, behind our own gate": {
			change: both(needsDB, func(p *corev1.Pod) {
				p.Spec.NodeName, p.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: "spillway.dev/config-missing"}}
			}),
			root: "secret/db", sentence: "Secret db not found", reason: explain.ReasonMissing,
			next: "kubectl create secret generic db -n shop --from-literal=password=VALUE",
		},
		"with a node selector that no node matches": {
			change: both(unscheduled("0/1 nodes are available"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }),
			others: []client.Object{node(corev1.ConditionTrue)},
			root:   "pod/web", sentence: "Pod web cannot be scheduled: no node has the labels of its node selector, disk=ssd", reason: explain.ReasonUnschedulable,
			next: "kubectl get nodes -l disk=ssd",
		},
		"without room": {
			change: unscheduled("0/1 nodes are available: insufficient cpu."),
			root:   "pod/web", sentence: "Pod web cannot be scheduled: 0/1 nodes are available: insufficient cpu", reason: explain.ReasonUnschedulable,
		},
		"for another scheduler": {
			change: func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "", "night-shift" },
			root:   "pod/web", sentence: "Pod web is waiting: scheduler night-shift has not processed it; is it running?", reason: explain.ReasonUnschedulable,
			next: "kubectl get pods -A | grep -e night-shift",
		},
		"with a container that crashes": {
			change: ends(1, "Error"), others: []client.Object{node(corev1.ConditionTrue)},
			root: "pod/web", sentence: "Pod web: container app exited with code 1, restarted 3 times", reason: explain.ReasonCrash,
			next: "kubectl logs pod/web -n shop -c app --previous",
		},
		"with a container out of memory": {
			change: both(ends(137, "OOMKilled"), func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
			}),
			others: []client.Object{node(corev1.ConditionTrue)},
			root:   "pod/web", sentence: "Pod web: container app was killed: it used more memory than its limit of 64Mi, restarted 3 times", reason: explain.ReasonMemory,
		},
		"with an image that cannot be pulled": {
			change: waits("ImagePullBackOff", "no such image"), others: []client.Object{node(corev1.ConditionTrue)},
			root: "pod/web", sentence: "Pod web cannot pull the image app:v2 of container app: no such image", reason: explain.ReasonImage,
		},
		"without its pull Secret": {
			change: both(waits("ErrImagePull", ""), func(p *corev1.Pod) {
				p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			}),
			others: []client.Object{node(corev1.ConditionTrue)},
			root:   "secret/registry", sentence: "Secret registry not found", reason: explain.ReasonMissing,
		},
		"without a key": {
			change: both(needsDB, waits("CreateContainerConfigError", "couldn't find key")), others: []client.Object{node(corev1.ConditionTrue), db},
			root: "secret/db", sentence: "Secret db has no key password", reason: explain.ReasonKeyMissing,
			next: `kubectl patch secret/db -n shop --type=merge -p '{"stringData":{"password":"VALUE"}}'`,
		},
		"with a probe that fails": {
			change: both(runs, func(p *corev1.Pod) {
				p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(80)}}}
			}),
			others: []client.Object{node(corev1.ConditionTrue)},
			root:   "pod/web", sentence: "Pod web is not ready: container app is not ready: readiness probe GET /ready on port 80 fails", reason: explain.ReasonProbe,
			next: "kubectl logs pod/web -n shop -c app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := explained(t, describe.Ref{Kind: "Pod", Namespace: "shop", Name: "web"}, append(c.others, web(c.change))...)
			root := found.Root()
			if root.String() != c.root || root.Sentence != c.sentence || root.Reason != c.reason {
				t.Errorf("the root is %s (%s): %s", root, root.Reason, root.Sentence)
			}
			if c.next != "" && root.Next != c.next {
				t.Errorf("the next command is %s", root.Next)
			}
		})
	}
}

// Of several Pods the chain follows the worst, and not one that has a replacement.
func TestWorkloadsFollowTheWorstPod(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	*set.Spec.Replicas, set.UID, set.Status.Replicas = 3, "rs", 3
	of := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := web(change)
		p.Name, p.Labels = name, map[string]string{"app": "web"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}
		return p
	}
	unowned := web(waits("ImagePullBackOff", ""))
	unowned.Name, unowned.Labels = "a-unowned", map[string]string{"app": "web"}
	found := explained(t, describe.Ref{Kind: "ReplicaSet", Namespace: "shop", Name: "web"}, set, node(corev1.ConditionTrue), unowned,
		of("evicted", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }),
		of("starting", waits("ContainerCreating", "")), of("crashing", ends(1, "Error")))
	if root := found.Root(); root.Name != "crashing" || root.Owner != "replicaset/web" {
		t.Errorf("it follows %s of %s: %s", root, root.Owner, root.Sentence)
	}
}

// Config is explained by who uses it, and by who waits for it.
func TestConfigObjects(t *testing.T) {
	uses := func(key string, optional bool) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: meta("web")}
		d.Spec.Template.Spec = web(func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "app"}, Key: key, Optional: &optional,
			}}}}
		}).Spec
		return d
	}
	app := &corev1.ConfigMap{ObjectMeta: meta("app"), Data: map[string]string{"a": "1"}}
	for want, objects := range map[string][]client.Object{
		"ConfigMap app exists and has all keys that are used":          {app, uses("a", false)},
		"ConfigMap app has no key b; Deployment web is waiting for it": {app, uses("b", false)},
		"ConfigMap app not found; Deployment web is waiting for it":    {uses("a", false)},
		"ConfigMap app not found; it is optional for all that use it":  {uses("a", true)},
		"ConfigMap app exists; no workload in its namespace uses it":   {app},
	} {
		found := explained(t, describe.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "app"}, objects...)
		if got := found.Links[0].Sentence; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, fact := range found.Facts {
			if fact.Name == "keys" && strings.Join(fact.Values, "") != "a" {
				t.Errorf("the facts have %q", fact.Values)
			}
		}
	}
}

// A budget says how many disruptions it allows.
func TestDisruptionBudgets(t *testing.T) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta("web")}
	budget.Status = policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, ExpectedPods: 2, DesiredHealthy: 2}
	ref := describe.Ref{Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"}
	if link := explained(t, ref, budget).Links[0]; link.Reason != explain.ReasonNoBudget ||
		link.Sentence != "PodDisruptionBudget web allows no disruption: 1 of 2 Pods are healthy, 2 must be" {
		t.Errorf("%s: %s", link.Reason, link.Sentence)
	}
	budget.Status.DisruptionsAllowed = 2
	if link := explained(t, ref, budget).Links[0]; link.Sentence != "PodDisruptionBudget web allows 2 disruptions" || link.Next != "" {
		t.Errorf("%s; %s", link.Sentence, link.Next)
	}
}

// A claim is pending for a class that does not exist, or for the Pod that uses it.
func TestClaims(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data")}
	claim.Spec.StorageClassName, claim.Status.Phase = new("fast"), corev1.ClaimPending
	ref := describe.Ref{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
	found := explained(t, ref, claim)
	if root := found.Root(); root.String() != "storageclass/fast" || root.Reason != explain.ReasonMissing || found.Links[0].Reason != explain.ReasonUnbound {
		t.Errorf("%s: %s", root, root.Sentence)
	}
	claim.Status.Phase, claim.Spec.VolumeName = corev1.ClaimBound, "pv-1"
	found = explained(t, ref, claim)
	if root := found.Root(); root.Sentence != "PersistentVolumeClaim data is bound to pv-1" {
		t.Error(root.Sentence)
	}
}
