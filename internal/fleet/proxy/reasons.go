package proxy

import "github.com/spillway-dev/spillway/rollout"

// The reasons of syncs, besides those of package assemblage.
const (
	// ReasonRefused: the cluster does not accept the kubeconfig.
	// Action: put valid credentials into the Secret that the message names.
	ReasonRefused rollout.Reason = "KubeconfigRefused"
	// ReasonKindMissing: Spillway is not installed on the cluster.
	// Action: run Spillway there with --rings=assemblage.
	ReasonKindMissing rollout.Reason = "AssemblageKindMissing"
)
