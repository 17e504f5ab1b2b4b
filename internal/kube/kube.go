// Package kube holds what all rings share in talking to the API server.
package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// FieldOwner is the name under which Spillway's writes stand in managedFields.
const FieldOwner = "spillway"

// ModuleOwner is how the names begin under which what modules assign stands there, each
// under its own.
const ModuleOwner = FieldOwner + "-module/"

// Truth is the status of a condition that is so, or is not.
func Truth(yes bool) metav1.ConditionStatus {
	if yes {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// IsResync is true of an update by which nothing has changed: the cache tells of all
// that it has once in a while.
func IsResync(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}
