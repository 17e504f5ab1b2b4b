// Package v1beta1 has the kinds of the group kudo.dev: an Operator that can be
// installed, an OperatorVersion with its plans, and an Instance that runs.
//
// +kubebuilder:object:generate=true
// +groupName=kudo.dev
package v1beta1
