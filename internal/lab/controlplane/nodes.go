package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zones are where the nodes are, in turn.
var zones = []string{"zone-a", "zone-b", "zone-c"}

// The nodes that kwok plays have a label. It leaves others alone, such as a real one.
const (
	playedLabel = "type"
	playedValue = "kwok"
	played      = playedLabel + "=" + playedValue
)

func (cp *ControlPlane) createNodes(ctx context.Context) error {
	c, err := cp.Clientset()
	if err != nil {
		return err
	}
	for i := range cp.options.Nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelTopologyZone: zones[i%len(zones)], corev1.LabelHostname: name, playedLabel: playedValue,
		}}}
		if _, err := c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node: %w", err)
		}
	}
	return nil
}

// waitUsable waits until Pods can be created, and scheduled if there are nodes.
func (cp *ControlPlane) waitUsable(ctx context.Context) error {
	c, err := cp.Clientset()
	if err != nil {
		return err
	}
	return cp.until(ctx, func() bool {
		_, err := c.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return false
		}
		nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && allReady(nodes.Items)
	}, append([]*process{cp.api}, cp.others...)...)
}

// allReady is true once every node is ready and may be used.
func allReady(nodes []corev1.Node) bool {
	for i := range nodes {
		if len(nodes[i].Spec.Taints) > 0 || !isReady(&nodes[i]) {
			return false
		}
	}
	return true
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
