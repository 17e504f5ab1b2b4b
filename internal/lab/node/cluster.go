package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// CheckCluster is nil if the stories can run on an existing cluster: who asks may do everything, a node takes
// Pods, and a Pod of the image ends well there. Else it says what is missing, and what to do.
func CheckCluster(ctx context.Context, c kubernetes.Interface, image string) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Version: "*", Resource: "*"},
	}}
	review, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the cluster does not answer: %w; check the kubeconfig of CLUSTER", err)
	}
	if !review.Status.Allowed {
		return errors.New("the user of the kubeconfig of CLUSTER may not do everything, and the stories install kinds, roles and policies; use one of cluster-admin")
	}
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes of the cluster: %w", err)
	}
	if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return isUsable(&n) }) {
		return fmt.Errorf("none of the %d nodes of the cluster is Ready without taints; start one, or remove its taints", len(nodes.Items))
	}
	return tryImage(ctx, c, cmp.Or(image, Image))
}

// imageTimeout is how long a node may take to pull the image and run it.
const imageTimeout = 2 * time.Minute

// tryImage runs a Pod of the image to its end, in a namespace of its own.
func tryImage(ctx context.Context, c kubernetes.Interface, image string) error {
	ns, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	defer func() {
		_ = c.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), ns.Name, metav1.DeleteOptions{})
	}()
	no, pods := false, c.CoreV1().Pods(ns.Name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "image"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"once"}}},
	}}
	ran, ends := errors.New("no node has taken it"), false
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, imageTimeout, true, func(ctx context.Context) (bool, error) {
		ends, ran = tryOnce(ctx, pods, pod, ran)
		return ends, nil
	})
	if ran != nil {
		return fmt.Errorf("a Pod of the image %s of IMAGE does not run on the cluster: %w; 'go run ./hack/node image program.tar' writes the image, and 'kind load image-archive program.tar' or 'k3d image import program.tar' loads it", image, ran)
	}
	return nil
}

// tryOnce creates a Pod if it does not exist yet, and reads it: ended is true if it has run, or never will. The error
// is why it has not run to its end.
func tryOnce(ctx context.Context, pods typedcorev1.PodInterface, pod *corev1.Pod, last error) (ended bool, _ error) {
	if pod.UID == "" { // its ServiceAccount may not exist yet
		made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("create a Pod: %w", err)
		}
		pod.UID = made.UID
	}
	now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get the Pod: %w", err)
	}
	return ranOnce(now, last)
}

func ranOnce(pod *corev1.Pod, last error) (ended bool, _ error) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodFailed:
		return true, fmt.Errorf("it failed: %+v", pod.Status.ContainerStatuses)
	}
	if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].State.Waiting != nil {
		last = fmt.Errorf("%s: %s", s[0].State.Waiting.Reason, s[0].State.Waiting.Message)
		return slices.Contains([]string{"ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"}, s[0].State.Waiting.Reason), last
	}
	return false, last
}
