// Package upgrade tries what becomes of rollouts under way while Spillway is installed,
// upgraded, taken back and removed: by its own command, and by the real Helm. The version
// before is built from its commit, that of the last tag, or of the file previous.
//
// No container runs here. The manager of each version is a process with the arguments of
// the installed Deployment and a token of its ServiceAccount, and so has exactly the
// permissions that were installed; so is the Job by which the chart prepares its removal.
//
// It takes some minutes, so it has a build tag: make upgrade-test.
package upgrade
