package controlplane

import "syscall"

// attributes are of a process in a group of its own, which the kernel kills with this one
// unless it is to stay.
func attributes(stay bool) *syscall.SysProcAttr {
	if stay {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
