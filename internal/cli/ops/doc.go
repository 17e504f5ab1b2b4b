// Package ops holds the commands that run Spillway itself: manager, install, uninstall,
// check, demo and version.
package ops
