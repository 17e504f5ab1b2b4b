//go:build !linux

package node

import "syscall"

// namespaces are of a process that is never started here.
func namespaces() *syscall.SysProcAttr { return nil }
