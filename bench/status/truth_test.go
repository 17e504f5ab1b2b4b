package status_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/record"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

// first is the workload that gets each content before all others do.
const first = "svc-0000"

const (
	// mostLines is how many lines an answer of explain has at most, mostRows how many status has: a line a cause, and four of
	// the policy. mostRecorded is how many bytes a record has, mostShown the page.
	mostLines    = 40
	mostRows     = 10
	mostRecorded = 256 << 10
	mostShown    = 64 << 10
	// mostNamed is how many names of this length a record has room for, at least.
	mostNamed = 4000
)

// TestNoStateIsFalse tells of a change that fails on the first of many workloads, to a user, to one with the role view, and
// once no manager runs. What each of them sees is true, once for each cause, and no workload is left out.
func TestNoStateIsFalse(t *testing.T) {
	s := newStory(t)
	t.Run("a viewer sees that all is complete", s.isComplete)
	s.fails()
	t.Run("one change is one rollout", s.isOne)
	t.Run("it is counted once", s.isCounted)
	t.Run("what many wait for is said once", s.isSaidOnce)
	s.undo()
	t.Run("what is undone is not complete", s.isUndone)
	s.halt()
	s.edit("common", "another")
	t.Run("what no manager has seen is not next", s.isUnseen)
}

// isComplete: who may not read Secrets sees what the manager has recorded, and receives no advice to grant anything.
func (s *story) isComplete(t *testing.T) {
	for _, as := range s.readers() {
		said := s.says(t, as, "status")
		if want := fmt.Sprintf("config: %d Complete, 1 policy\n", sharing); !strings.HasPrefix(said, want) || strings.Count(said, "\n") > 5 || strings.Contains(said, "ecret") {
			t.Errorf("to %q: %s", as, said)
		}
	}
	if said := s.says(t, s.viewer, "explain", "deployment/"+first); !strings.HasPrefix(said, "Deployment "+first+" is up to date.") || strings.Contains(said, "grant") {
		t.Error(said)
	}
}

// isOne: nothing is said of the Secret that the same workloads use.
func (s *story) isOne(t *testing.T) {
	for _, as := range s.readers() {
		if said := s.says(t, as, "status"); strings.Count(said, "configmap/common ") != 1 || strings.Contains(strings.ToLower(said), "secret") {
			t.Errorf("to %q: %s", as, said)
		}
	}
	said := s.says(t, "", "explain", "secret/db") // which the viewer may not read
	if want := fmt.Sprintf("Secret db: %d of %d tracked workloads are up to date", sharing, sharing); !strings.HasPrefix(said, want) {
		t.Error(said)
	}
	if r := s.records(t); len(r) != 1 || r[0].Name != "configmap-common" {
		t.Errorf("%d are recorded", len(r))
	}
}

// isCounted: status, explain, the record and the dashboard have one count, and each workload counts once.
func (s *story) isCounted(t *testing.T) {
	u, caused, named := s.records(t)[0].Rollout.Units, 0, 0
	for _, c := range s.records(t)[0].Rollout.Causes {
		caused, named = caused+int(c.Count), named+len(c.Units)
	}
	if want := (record.Counts{Total: sharing, Waiting: sharing - 1, Failed: 1}); u != want || caused != sharing || named < min(sharing, mostNamed) {
		t.Errorf("%+v are recorded, %d with a cause, %d of them by their names, want %+v", u, caused, named, want)
	}
	for _, as := range s.readers() {
		said := s.says(t, as, "status")
		if !strings.HasPrefix(said, fmt.Sprintf("config: 1 Failed, %d Waiting, 1 policy\n", sharing-1)) || !strings.Contains(said, fmt.Sprintf(" 0/%d\n", sharing)) {
			t.Errorf("to %q: %s", as, said)
		}
		if said := s.says(t, as, "explain", "configmap/common"); !strings.HasPrefix(said, fmt.Sprintf("ConfigMap common: 0 of %d tracked workloads are up to date.", sharing)) {
			t.Errorf("to %q: %s", as, said)
		}
	}
}

// isSaidOnce: a line a cause, an answer that fits on a screen, a page that is small, and a record that the API server
// stores as one of many.
func (s *story) isSaidOnce(t *testing.T) {
	const why = "failed on deployment/" + first + " (1 of 2 Pods CrashLoopBackOff)"
	lines, answer, stored, page := 0, 0, s.stored(t), s.page(t)
	for _, as := range s.readers() {
		said := s.says(t, as, "status")
		if lines = strings.Count(said, "\n"); lines > mostRows || strings.Count(said, why) != 1 {
			t.Errorf("to %q: %s", as, said)
		}
		said = s.says(t, as, "explain", "configmap/common")
		if answer = strings.Count(said, "\n"); answer > mostLines || strings.Count(said, why) != 1 {
			t.Errorf("to %q: %s", as, said)
		}
		for _, of := range []string{"deployment/" + first, "deployment/svc-0100"} {
			if said := s.says(t, as, "explain", of); strings.Count(said, "\n") > mostLines {
				t.Errorf("to %q: %s", as, said)
			}
		}
	}
	if stored > mostRecorded {
		t.Errorf("the record has %d bytes", stored)
	}
	if len(page) > mostShown || strings.Count(page, why) != 1 || !strings.Contains(page, fmt.Sprintf("%d wait for it", sharing-1)) {
		t.Errorf("the page has %d bytes: %.3000s", len(page), page)
	}
	fmt.Printf("| %d workloads on one ConfigMap that fails on the first: lines of status, of explain configmap/common (target: at most %d) | %d, %d |\n", sharing, mostLines, lines, answer)
	fmt.Printf("| … the record, as the API server has it (target: at most 256 KiB); the first page of the dashboard | %.1f KiB; %.1f KiB |\n", float64(stored)/1024, float64(len(page))/1024)
}

// isUndone: a workload that has its previous config back waits, as all others do, beside a rollout that has failed.
func (s *story) isUndone(t *testing.T) {
	for _, as := range s.readers() {
		if said := s.says(t, as, "status"); !strings.HasPrefix(said, fmt.Sprintf("config: %d Waiting, 1 policy\n", sharing)) || strings.Contains(said, "Complete") || strings.Contains(strings.ToLower(said), "secret") {
			t.Errorf("to %q: %s", as, said)
		}
		said := s.says(t, as, "explain", "deployment/"+first)
		if !strings.HasPrefix(said, "Deployment "+first+" is waiting: ConfigMap common@") || strings.Contains(said, "Secret db, changed") {
			t.Errorf("to %q: %s", as, said)
		}
		if said := s.says(t, as, "history", "configmap/common"); !strings.Contains(said, "  Failed\n") || !strings.Contains(said, "1 of 2 Pods CrashLoopBackOff") {
			t.Errorf("to %q: %s", as, said)
		}
	}
	if r := s.records(t); len(r) != 1 || r[0].Rollout.Phase != "Failed" || r[0].Rollout.Units != (record.Counts{Total: sharing, Waiting: sharing}) {
		t.Errorf("it is recorded: %+v", r)
	}
}

// isUnseen: that no manager runs is said first, and nothing is said to move, or to end.
func (s *story) isUnseen(t *testing.T) {
	moves := regexp.MustCompile(`is next|is queued|is updating|ends in|[1-9][0-9]* (Complete|Progressing)`)
	for _, as := range s.readers() {
		said := s.says(t, as, "status")
		if !strings.HasPrefix(said, fmt.Sprintf("config: %d Unseen, 1 policy\n", sharing)) || strings.Count(said, "\n") > mostRows || moves.MatchString(said) {
			t.Errorf("to %q: %s", as, said)
		}
		for _, of := range []string{"configmap/common", "deployment/" + first} {
			said := s.says(t, as, "explain", of)
			if !strings.Contains(said, "the manager has not observed its") || strings.Count(said, "\n") > mostLines || moves.MatchString(said) {
				t.Errorf("to %q: %s", as, said)
			}
		}
	}
	for _, command := range [][]string{{"status"}, {"forecast", "deployment/" + first}} {
		out, errs, _ := s.run(command...)
		if !strings.HasPrefix(errs, "note: no manager is at work: ") {
			t.Errorf("%s says %s\n%s", command, errs, out)
		}
		if command[0] != "forecast" && moves.MatchString(out) { // it says what one would do
			t.Errorf("%s says %s", command, out)
		}
	}
	s.watches(t, moves)
	if page := s.page(t); len(page) > mostShown || moves.MatchString(page) || !strings.Contains(page, "No manager is at work") {
		t.Errorf("the page has %d bytes: %.3000s", len(page), page)
	}
}

// watches has watch say how a workload stands, and before that that no manager runs.
func (s *story) watches(t *testing.T, moves *regexp.Regexp) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, errs, ended := &testenv.Buffer{}, &testenv.Buffer{}, make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, command.Environment{
			Args: []string{"spillway", "watch", "deployment/" + first, "-n", s.namespace, "--kubeconfig", testenv.Shared().Kubeconfig()}, Out: out, Err: errs, Now: time.Now, Lookup: os.LookupEnv,
		})
	}()
	testenv.Eventually(t, func(context.Context) error {
		if !strings.Contains(out.String(), "\n") {
			return errors.New("nothing is said")
		}
		return nil
	})
	stop()
	<-ended
	if !strings.HasPrefix(errs.String(), "note: no manager is at work: ") || moves.MatchString(out.String()) {
		t.Errorf("watch says %s\n%s", errs, out)
	}
}

// story is many workloads that use one ConfigMap and one Secret, under a manager.
type story struct {
	*world

	viewer string
	halt   func()
}

// readers are who looks: one who may read all, and the viewer.
func (s *story) readers() []string { return []string{"", s.viewer} }

// says is what a command says to a reader.
func (s *story) says(t *testing.T, as string, args ...string) string {
	t.Helper()
	if as != "" {
		args = append(args, "--as", as)
	}
	out, errs, code := s.run(args...)
	if code != 0 {
		t.Errorf("%s: exit code %d: %s", args, code, errs)
	}
	return out
}

// page is the first page of a dashboard that has read all.
func (s *story) page(t *testing.T) string {
	t.Helper()
	d := (&world{t: t}).dashboard(testenv.Shared().Kubeconfig(), "-n", s.namespace)
	d.fills()
	return d.read("/")
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{world: newWorld(t)}
	s.viewer = "viewer-of-" + s.namespace
	testenv.Grant(t, s.client, s.namespace, s.viewer, []rbacv1.PolicyRule{{APIGroups: []string{"spillway.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}})
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: s.named("view"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: s.viewer}},
	})
	s.create(&corev1.ConfigMap{ObjectMeta: s.named("common"), Data: map[string]string{"k": "good"}})
	s.create(&corev1.Secret{ObjectMeta: s.named("db"), StringData: map[string]string{"p": "x"}})
	s.create(&spillwayv1.ConfigPolicy{ObjectMeta: s.named("careful"), Spec: spillwayv1.ConfigPolicySpec{Stages: []spillwayv1.ConfigStage{
		{Name: "first", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": first}}}, {Name: "rest"},
	}}})
	s.each(sharing, s.shares)
	s.manage()
	s.are(sharing - 1)
	s.starts(true)
	s.are(sharing)
	return s
}

// are waits until so many workloads have their config and are ready with it, however long it takes, as long as it goes on.
func (s *story) are(n int) {
	s.t.Helper()
	for before, ready := -1, 0; ready < n; {
		testenv.Eventually(s.t, func(ctx context.Context) error {
			is, steps := s.ready(ctx)
			if ready = is; ready < n && steps <= before {
				return fmt.Errorf("%d of %d are ready", ready, n)
			}
			before = steps
			return nil
		})
	}
}

// ready is how many workloads have their config and are ready with it, and how many steps all have taken to that.
func (s *story) ready(ctx context.Context) (n, steps int) {
	list := &appsv1.DeploymentList{}
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return 0, 0
	}
	for i := range list.Items {
		d := &list.Items[i]
		isHashed, isSeen := d.Spec.Template.Annotations["spillway.dev/config-hash"] != "", d.Status.ObservedGeneration == d.Generation
		switch {
		case isHashed && isSeen:
			steps += 3
		case isHashed:
			steps += 2
		case isSeen:
			steps++
		}
		if isHashed && isSeen && d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == d.Status.UpdatedReplicas { // no Pod before it is left
			n++
		}
	}
	return n, steps
}

// manage runs a manager until it is halted.
func (s *story) manage() {
	s.t.Helper()
	o := manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: []string{s.namespace}, MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
		Config: config.Options{Now: time.Now, Options: decision.Options{RecordEvery: decision.RecordEvery}},
	}
	s.halt = testenv.Managed(s.t, s.requests, func(ctx context.Context, _ logr.Logger) error {
		return manager.Run(ctx, testenv.Shared().Config(), o)
	})
}

// shares is a workload that uses both. Only the first one has a Pod.
func (s *story) shares(i int) {
	name := fmt.Sprintf("svc-%04d", i)
	template := template(name)
	template.Spec.SchedulerName = "none"
	template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "common"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
	}
	meta := s.named(name)
	meta.Annotations, meta.Labels = map[string]string{"spillway.dev/update-on-config-change": "true"}, template.Labels
	replicas := new(int32)
	if name == first {
		*replicas = 1
	}
	s.create(&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}})
}

// starts plays the kubelet of the next Pod of the first workload that has not started.
func (s *story) starts(well bool) {
	s.t.Helper()
	testenv.Eventually(s.t, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": first}); err != nil {
			return err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if len(p.Status.ContainerStatuses) > 0 || p.Spec.Containers == nil || p.DeletionTimestamp != nil || p.Annotations["spillway.dev/config-hash"] == "" {
				continue
			}
			is := corev1.ContainerStatus{Name: "c", Image: "x", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
			ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
			if !well {
				is.Ready, is.RestartCount, ready.Status = false, 3, corev1.ConditionFalse
				is.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			}
			p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.Now())
			p.Status.ContainerStatuses, p.Status.Conditions = []corev1.ContainerStatus{is}, []corev1.PodCondition{ready}
			return s.client.Status().Update(ctx, p)
		}
		return fmt.Errorf("no Pod has to start")
	})
}

func (s *story) edit(name, value string) {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: s.named(name)}
	if err := s.client.Patch(s.t.Context(), cm, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"k":%q}}`, value))); err != nil {
		s.t.Fatal(err)
	}
}

// fails has the first workload fail with what the ConfigMap says next.
func (s *story) fails() {
	s.t.Helper()
	s.edit("common", "bad")
	s.starts(false)
	s.recorded(record.Counts{Total: sharing, Waiting: sharing - 1, Failed: 1})
}

// recorded waits until the workloads are counted so.
func (s *story) recorded(counts record.Counts) {
	s.t.Helper()
	testenv.Eventually(s.t, func(context.Context) error {
		if all := s.records(s.t); len(all) == 0 || all[0].Rollout == nil || all[0].Rollout.Units != counts {
			return fmt.Errorf("%d are recorded", len(all))
		}
		return nil
	})
}

// records are all of the namespace.
func (s *story) records(t *testing.T) []spillwayv1.ConfigRollout {
	t.Helper()
	list := &spillwayv1.ConfigRolloutList{}
	if err := s.client.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// stored is how many bytes the record has, as the API server has it.
func (s *story) stored(t *testing.T) int {
	t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.RESTClient().Get().AbsPath("/apis/spillway.dev/v1alpha1/namespaces", s.namespace, "configrollouts", "configmap-common").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

// undo gives the first workload its previous config back, as kubectl rollout undo does.
func (s *story) undo() {
	s.t.Helper()
	d := &appsv1.Deployment{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "svc-0001"}, d); err != nil {
		s.t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"spillway.dev/config-hash":%q}}}}}`, d.Spec.Template.Annotations["spillway.dev/config-hash"])
	if err := s.client.Patch(s.t.Context(), &appsv1.Deployment{ObjectMeta: s.named(first)}, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
	s.recorded(record.Counts{Total: sharing, Waiting: sharing})
}

// run runs a command.
func (s *story) run(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = cli.Run(s.t.Context(), command.Environment{
		Args: append(append([]string{"spillway"}, args...), "-n", s.namespace), Out: &o, Err: &e, Now: time.Now,
		Lookup: func(name string) (string, bool) {
			return testenv.Shared().Kubeconfig(), name == "SPILLWAY_KUBECONFIG"
		},
	})
	return o.String(), e.String(), code
}
