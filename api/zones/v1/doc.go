// Package v1 has the kinds of the group rollout-operator.grafana.com, whose fields
// and defaults are those of the predecessor that they come from.
//
// +kubebuilder:object:generate=true
// +groupName=rollout-operator.grafana.com
package v1
