package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile lists, in the folder of a control plane that stays, what to end.
const pidFile = "pids"

// Leave writes down how to end a control plane that was started with Stay.
func (cp *ControlPlane) Leave() error {
	var pids []string
	for _, b := range cp.beside {
		pids = append(pids, b.pids()...)
	}
	pids = append(pids, cp.pids()...)
	return cp.write(pidFile, []byte(strings.Join(pids, "\n")))
}

// pids are the processes that were started, in the order of their end.
func (cp *ControlPlane) pids() []string {
	var pids []string
	for _, p := range append(cp.others, cp.api, cp.etcd) {
		if p != nil {
			pids = append(pids, strconv.Itoa(p.cmd.Process.Pid))
		}
	}
	return pids
}

// StopAt ends a control plane that was left running, given its folder, and
// removes the folder.
func StopAt(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return fmt.Errorf("no control plane was left at %s: %w", dir, err)
	}
	var errs []error
	for line := range strings.Lines(string(raw)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return fmt.Errorf("%s is damaged: %w", pidFile, err)
		}
		errs = append(errs, end(pid))
	}
	return errors.Join(append(errs, os.RemoveAll(dir))...)
}
