// Package v1 has the kinds of the group rollout-operator.grafana.com, whose fields
// and defaults are those of rollout-operator.
//
// +kubebuilder:object:generate=true
// +groupName=rollout-operator.grafana.com
package v1
