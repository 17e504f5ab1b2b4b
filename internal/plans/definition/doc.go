// Package definition says whether a CustomResourceDefinition that changes refuses objects that
// exist. It judges as the API server does, with its own validation.
//
// Only what the change makes invalid counts: an object that the present schema refuses as well
// stands in the way of nothing. No value of an object is in what is said, and objects are read in
// pages, of which one is held at a time.
package definition
