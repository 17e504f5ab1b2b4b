// Package controlplane starts a real control plane for tests and the demo: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which plays
// the kubelets.
//
// The binaries come from KUBEBUILDER_ASSETS, or else from the cache that
// hack/controlplane fills. SPILLWAY_TEST_KUBECONFIG names the kubeconfig of an
// existing cluster to be used instead of starting one.
//
// kwok does what annotations on Pods ask for:
//
//	testenv.spillway.dev/ready-after: 500ms   Ready (or completed) only then
//	testenv.spillway.dev/behavior: never-ready | crash | complete | fail
//	testenv.spillway.dev/pod-ip: 127.1.2.3    an address where a test may listen
//
// It manages the nodes with the label type=kwok, and leaves a real one alone (package node).
// Unlike a kubelet, kwok starts a Pod whose ConfigMaps and Secrets do not exist.
//
// Everything that is started is ended with the process that started it, however
// that ends, unless it was asked to stay.
//
// # Why
//
// Tests and the demo share the control plane, and the demo is part of the program. So this
// package knows nothing of tests, and package testenv gives it to them.
package controlplane
