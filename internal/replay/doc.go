// Package replay records what the engine decides, and from what, and decides it again: with the same program what is decided is
// equal byte for byte, and with another one every decision that differs is named, before that one is installed.
//
// Decide is the engine for all rings. It records only in a manager that was asked to; elsewhere it is [rollout.Decide].
//
// A record is a ring of files in a folder, and never grows beyond its size. It has what the engine is given: names of objects,
// revisions, states, times, and the sentences of users who pause or decide. There is no content of a ConfigMap or Secret in
// that, and no digest of one but those which the objects of the API show. HideNames leaves names and sentences out, too: what
// is recorded then is the decision about the same tree with other names.
//
// Nothing is decided from a record, and a record that cannot be written stops no decision.
package replay
