// Package admission is the part of Spillway that the API server calls.
//
// A ring declares its webhooks as values ([Webhook]), so that they can be installed without a
// manager, and answers them by handlers ([Route]). Package serve is the TLS server for the
// webhooks of all rings. Package certificate keeps its certificate, and the CA bundle in the
// webhook configurations that lead to it.
package admission
