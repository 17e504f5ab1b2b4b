// Package testenv gives test packages a control plane, which all of them share in make
// test, and tests what they need on it. See package controlplane for what runs there, and
// package fault for what can go wrong.
package testenv
