// Package node tells on real Pods what the other tests tell on played ones: what a kubelet does with
// the ConfigMaps and Secrets of running, restarted and new containers, and what of it a release
// notices; and how the zones of a group roll, are prepared and are scaled. It runs on a real node, or on a cluster that the environment names.
//
// It needs Linux and root, so it has a build tag: make test-node.
package node
