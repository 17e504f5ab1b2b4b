package node

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
)

//go:embed start.sh
var start string

// startTimeout bounds how long a node may take to be ready, on a machine that has much else to do.
const startTimeout = 3 * time.Minute

// Node is a node that runs.
type Node struct {
	// Dir has its logs.
	Dir    string
	groups string
	cmd    *exec.Cmd
	done   chan struct{}
}

// Build builds the programs of a node, unless the cache has them, and returns their folder.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	return controlplane.Build(ctx, "node", progress)
}

// Join starts a node of this name, and waits until Pods can run on it.
func Join(ctx context.Context, cp *controlplane.ControlPlane, name string, progress io.Writer) (*Node, error) {
	if err := errors.Join(Check(), sweep()); err != nil {
		return nil, err
	}
	programs, err := Build(ctx, progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n := &Node{Dir: filepath.Join(cp.Dir, name), done: make(chan struct{})}
	address, err := n.prepare(ctx, programs)
	if err == nil {
		err = n.run(programs, cp.Kubeconfig(), name, address)
	}
	if err == nil {
		err = n.waitReady(ctx, cp, name)
	}
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// prepare writes all files of a node, and returns its address.
func (n *Node) prepare(ctx context.Context, programs string) (address string, err error) {
	if err := os.MkdirAll(filepath.Join(n.Dir, "state"), 0o755); err != nil {
		return "", fmt.Errorf("folder of the node: %w", err)
	}
	if address, err = ownAddress(); err != nil {
		return "", err
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = controlplane.FreePort(); err != nil {
			return "", err
		}
	}
	n.groups = groupName(fmt.Sprint(ports[0]))
	// A port is below 1<<15, and only one process has it.
	subnet := fmt.Sprintf("100.%d.%d.0/24", 64+ports[0]>>8&63, ports[0]&255)
	var errs []error
	for file, content := range map[string]string{
		"start.sh": start, "resolv.conf": "nameserver 127.0.0.1\n",
		"containerd.toml": containerdConfig(n.Dir, programs), "kubelet.yaml": kubeletConfig(n.Dir, n.groups, ports),
		"cni/10-node.conflist": networkConfig(subnet),
	} {
		path := filepath.Join(n.Dir, file)
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600))
	}
	return address, errors.Join(append(errs, makeGroups(n.groups), WriteImage(ctx, filepath.Join(n.Dir, "image.tar")))...)
}

// ownAddress is an address of this machine; a node may not have a loopback one.
func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("address of the node: %w", err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String(), nil
		}
	}
	return "", fmt.Errorf("%w: this machine has no address besides loopback, and a node needs one", ErrNotHere)
}

func (n *Node) run(programs, kubeconfig, name, address string) error {
	log, err := os.Create(filepath.Join(n.Dir, "start.log"))
	if err != nil {
		return fmt.Errorf("log of the node: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own handle
	n.cmd = exec.Command("bash", filepath.Join(n.Dir, "start.sh"), n.Dir, programs, filepath.Join(n.Dir, "image.tar"), kubeconfig, name, address)
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.SysProcAttr = log, log, namespaces()
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	go func() {
		_ = n.cmd.Wait() // how it ended is in its log
		close(n.done)
	}()
	return nil
}

func (n *Node) waitReady(ctx context.Context, cp *controlplane.ControlPlane, name string) error {
	c, err := cp.Clientset()
	if err != nil {
		return err
	}
	for {
		node, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && isUsable(node) {
			return nil
		}
		select {
		case <-n.done:
			return fmt.Errorf("the node has ended: %s", n.said())
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %w: %s", ctx.Err(), n.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isUsable(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return len(node.Spec.Taints) == 0
		}
	}
	return false
}

// said is the end of what each of its programs has logged.
func (n *Node) said() string {
	const most = 3000
	var all []string
	for _, name := range []string{"start.log", "containerd.log", "kubelet.log"} {
		raw, err := os.ReadFile(filepath.Join(n.Dir, name))
		if err != nil {
			continue // it was not started
		}
		all = append(all, name+":\n"+string(raw[max(0, len(raw)-most):]))
	}
	return strings.Join(all, "\n")
}

// Stop ends the node with all its containers, and returns once nothing is left of it but its
// folder, which is that of its control plane.
func (n *Node) Stop() error {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may have ended already
		<-n.done
	}
	if n.groups == "" {
		return nil
	}
	return removeGroups(n.groups)
}
