// Package ops holds the commands that run Spillway itself: manager, install, uninstall,
// demo and version.
package ops
