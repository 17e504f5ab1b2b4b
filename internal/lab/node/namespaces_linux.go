package node

import "syscall"

// namespaces are of a process that is the first in namespaces for processes and mounts, and that
// the kernel ends with this one.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
