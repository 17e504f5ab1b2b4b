package plans_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// TestReadyOnlyOnceDeployed: an Instance whose OperatorVersion has a cleanup plan is never
// ready before it was deployed, also while the API server refuses its finalizer.
func TestReadyOnlyOnceDeployed(t *testing.T) {
	for name, refused := range map[string]bool{"as usual": false, "the finalizer is refused": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			early := c.readyTooEarly()
			lift := func() {}
			if refused {
				lift = c.refuseFinalizers()
			}
			c.operator("app-1", stuckCleanup)
			c.manage()
			c.instance("web", "app-1")
			if refused {
				c.waits("web", "plan deploy is waiting: cannot update Instance web: ")
				c.warns("WriteRefused", "no finalizers now")
			}
			lift()
			c.rests("web", "deploy Complete")
			c.eventually(func() error {
				if !apimeta.IsStatusConditionTrue(c.now("web").Status.Conditions, ring.ConditionReady) {
					return fmt.Errorf("not ready: %s", c.now("web").Status.WaitingFor)
				}
				return nil
			})
			if got := early(); len(got) > 0 {
				t.Errorf("it was ready before it was deployed: %q", got)
			}
		})
	}
}

// warns waits for a warning with this reason whose note contains this.
func (c *cluster) warns(reason, note string) {
	c.t.Helper()
	c.eventually(func() error {
		list := &eventsv1.EventList{}
		c.list(list)
		for _, e := range list.Items {
			if e.Type == corev1.EventTypeWarning && e.Reason == reason && strings.Contains(e.Note, note) {
				return nil
			}
		}
		return fmt.Errorf("no Event %s with %q", reason, note)
	})
}

// readyTooEarly collects, from a watch, the statuses in which an Instance is ready at its
// own generation and was never deployed.
func (c *cluster) readyTooEarly() func() []string {
	c.t.Helper()
	watching, err := client.NewWithWatch(c.cp.Config(), client.Options{Scheme: c.client.Scheme()})
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := watching.Watch(c.t.Context(), &v1beta1.InstanceList{}, client.InNamespace(c.namespace))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(w.Stop)
	mu, early := sync.Mutex{}, []string{}
	go func() {
		for e := range w.ResultChan() {
			i, ok := e.Object.(*v1beta1.Instance)
			if !ok || i.Status.LastAppliedInstanceSpec != nil || i.Status.ObservedGeneration != i.Generation {
				continue
			}
			if ready := apimeta.FindStatusCondition(i.Status.Conditions, ring.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
				mu.Lock()
				early = append(early, ready.Message)
				mu.Unlock()
			}
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(early)
	}
}

// refuseFinalizers refuses finalizers of Instances until it is lifted.
func (c *cluster) refuseFinalizers() (lift func()) {
	c.t.Helper()
	rule := admissionregistrationv1.NamedRuleWithOperations{}
	rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{v1beta1.GroupVersion.Group}, []string{"*"}, []string{"instances"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace + ".refuses-finalizers"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.namespace}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "!has(object.metadata.finalizers)", Message: "no finalizers now"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := c.client.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = c.client.Delete(context.Background(), obj) }) // it may be lifted by then
	}
	c.operator("probe-1", stuckCleanup)
	c.instance("probe", "probe-1")
	c.eventually(func() error {
		probe := c.now("probe")
		probe.Finalizers = []string{"example.com/probe"}
		if err := c.client.Update(c.t.Context(), probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "no finalizers now") {
			return fmt.Errorf("the policy is not in force: %w", err)
		}
		return nil
	})
	c.remove(&v1beta1.Instance{}, "probe")
	return func() {
		if err := c.client.Delete(c.t.Context(), binding); err != nil {
			c.t.Fatal(err)
		}
	}
}
