package decision

import (
	"cmp"
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
)

// unearned says why an Instance must not be ready though its status says that it is,
// empty if it may. It is the oracle of all tests of this package: every status that any
// of them writes passes it.
func (w *world) unearned() string {
	i := w.instance
	s, applied := &i.Status, i.Status.LastAppliedInstanceSpec
	request, e := &i.Spec.PlanExecution, s.Execution
	if s.ObservedGeneration != i.Generation || !apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionReady) {
		return ""
	}
	switch {
	case i.DeletionTimestamp != nil:
		return "it is being deleted"
	case applied == nil:
		return "nothing was applied yet"
	case applied.OperatorVersion != i.Spec.OperatorVersion:
		return "another OperatorVersion was applied"
	case s.Running() != nil:
		return "a plan is running"
	case s.Attempted != nil && s.Attempted.Touched:
		return "a change was applied in part"
	case request.PlanName != "" && (e == nil || e.FinishedAt == nil || e.Spec.PlanExecution.PlanName != request.PlanName) && !request.Status.IsTerminal():
		return "plan " + request.PlanName + " was requested"
	}
	version := versionOf(w.versions[i.Spec.OperatorVersion.Name])
	for _, p := range version.Spec.Parameters {
		was, is := applied.Parameters[p.Name], i.Spec.Parameters[p.Name]
		if p.Default != nil && s.LastAppliedContentHash == version.Hash {
			was, is = cmp.Or(was, *p.Default), cmp.Or(is, *p.Default)
		}
		if was != is {
			return fmt.Sprintf("parameter %s was applied as %q, not %q", p.Name, was, is)
		}
	}
	return ""
}

// instanceRef is the Instance of a world.
func (w *world) instanceRef() object.Ref {
	return object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance"), Namespace: w.instance.Namespace, Name: w.instance.Name}
}

func TestNotReadyBeforeTheFirstPlan(t *testing.T) {
	w := newWorld(t, withCleanup)
	w.refuses[w.instanceRef()] = write.Refusal{Reason: "a policy refuses it"}
	for range 3 {
		w.pass()
	}
	const want = "plan deploy is waiting: cannot update Instance web: a policy refuses it"
	ready := apimeta.FindStatusCondition(w.instance.Status.Conditions, ring.ConditionReady)
	if ready.Status != metav1.ConditionUnknown || ready.Reason != string(ReasonInProgress) || ready.Message != want {
		t.Errorf("%+v", ready)
	}
	clear(w.refuses)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got)
	}
}

// TestNotReadyBetweenPlans: the spec changes while a plan runs and no guard refuses it.
// The status that ends the plan does not claim that the change was applied too.
func TestNotReadyBetweenPlans(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.InstanceSpec){
		"a parameter": parameters("COLOR", "blue"),
		"a request":   func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" },
	} {
		t.Run(name, func(t *testing.T) {
			w := stuckWorld(t, simple)
			w.set(change)
			w.recover(t)
			if got := len(w.instance.Status.History); got != 3 {
				t.Error(w.plans())
			}
		})
	}
}

// TestNotReadyWhileAnotherClientKeepsIt: an Instance that was cleaned up and is kept by the
// finalizer of another client is not ready.
func TestNotReadyWhileAnotherClientKeepsIt(t *testing.T) {
	w := newWorld(t, withCleanup)
	w.settle(t)
	w.delete()
	w.settle(t)
	ready := apimeta.FindStatusCondition(w.instance.Status.Conditions, ring.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != string(ReasonDeleting) || ready.Message != "Instance web is being deleted" {
		t.Errorf("%+v", ready)
	}
}

// refuseInstance makes the API server refuse the ring's writes to the Instance itself, or
// accept them again.
func (s *simulation) refuseInstance() {
	ref := s.instanceRef()
	if _, refused := s.refuses[ref]; refused {
		delete(s.refuses, ref)
		return
	}
	s.refuses[ref] = write.Refusal{Reason: "not now"}
}
