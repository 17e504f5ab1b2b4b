package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// ErrNotHere is that no node can run on this machine.
var ErrNotHere = errors.New("no node can run here; to use a cluster that you have (kind, k3d, minikube): make test-node CLUSTER=KUBECONFIG IMAGE=NAME")

// Check is nil if a node can run on this machine, as far as can be known before it is built and
// started. Else it is [ErrNotHere] with all that is missing.
func Check() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it needs Linux, and this is %s", ErrNotHere, runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it needs root (sudo)", ErrNotHere)
	}
	errs := []error{}
	for program, from := range map[string]string{"bash": "bash", "mount": "mount", "tail": "coreutils"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s was not found (Debian: apt-get install %s)", program, from))
		}
	}
	if _, err := os.Stat("/dev/kmsg"); err != nil {
		errs = append(errs, errors.New("the kubelet reads /dev/kmsg, which containers without --privileged lack"))
	}
	if err := try("mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs node /run && mkdir /run/a /run/b /run/c && " +
		"mount -t overlay -o lowerdir=/run/a,upperdir=/run/b,workdir=/run/c node /var/lib"); err != nil {
		errs = append(errs, fmt.Errorf("it needs namespaces for processes and mounts, and overlayfs: %w", err))
	}
	if err := tryGroup(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrNotHere, errors.Join(errs...))
	}
	return nil
}

// try runs a script in the namespaces of a node.
func try(script string) error {
	cmd := exec.Command("bash", "-c", script)
	cmd.SysProcAttr = namespaces()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func tryGroup() error {
	name := groupName("check")
	if err := makeGroups(name); err != nil {
		return errors.Join(err, removeGroups(name))
	}
	return removeGroups(name)
}
