// Package testenv gives each test package a control plane of its own, and tests
// what they need on it. See package controlplane for what runs there, and
// package fault for what can go wrong.
package testenv
