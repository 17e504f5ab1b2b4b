// Package migrate is the command migrate: it changes a cluster over from a former controller to Spillway, and back.
//
// At no instant two controllers act on one object: the former controller is scaled to zero, and its Pods are gone, before
// Spillway is installed, and the other way round when going back. What the way back needs is recorded before the first
// write, in a ConfigMap beside the manager.
package migrate
