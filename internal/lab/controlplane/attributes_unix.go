//go:build unix && !linux

package controlplane

import "syscall"

// attributes are of a process in a group of its own.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
