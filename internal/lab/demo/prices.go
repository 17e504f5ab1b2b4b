package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	prices = "prices"
	// mode is the key of the ConfigMap, and the argument of the program. With badMode the
	// program ends, on a real kubelet too.
	mode, goodMode, badMode = "MODE", "serve", "-v"
	// firstUser is rolled first for the ConfigMap, and otherUser after it.
	firstUser, otherUser = "catalog", "offers"
)

// pricesStory is what the chapter of the bad value has seen.
type pricesStory struct {
	// first and other are the pins of the workloads before.
	first, other string
	// kept is the sentence about the Pod that came back.
	kept string
	// began is when the bad value was written, and took the time until all was as before.
	began time.Time
	took  time.Duration
}

// spoilPrices writes a value with which no container runs. It fails if the second workload
// gets it, if a Pod of the earlier revision does, or if the first one does not go back.
func (s *story) spoilPrices(ctx context.Context) error {
	if !s.Pins {
		s.view.heading("Skipping the bad value: it needs Kubernetes 1.36, permission to create policies and kinds, and kubelets that read config")
		return nil
	}
	s.view.heading("A user edits ConfigMap prices: MODE=-v, with which the program ends immediately")
	s.view.line("catalog and offers use it. ConfigPolicy prices rolls one of them first, and lets revisions keep their config.\n")
	if err := s.rememberPins(ctx); err != nil {
		return err
	}
	s.prices.began = s.Now()
	if err := s.patch(ctx, &corev1.ConfigMap{}, prices, `{"data":{"MODE":"-v"}}`); err != nil {
		return err
	}
	err := s.settlePrices(ctx, func(first, other *config.Explanation) bool {
		return first.State == config.StateFailed && other.FailedOn != nil
	})
	if err != nil {
		return err
	}
	return s.replaceEarlierPod(ctx)
}

// explainPrices shows what a user reads who asks why the second workload waits.
func (s *story) explainPrices(ctx context.Context) error {
	if !s.Pins {
		return nil
	}
	object := "deployment/" + otherUser
	s.view.heading("spillway explain " + object + " -n " + s.Namespace)
	return s.Explain(ctx, object)
}

// returnPrices lets the failed workload go back automatically.
func (s *story) returnPrices(ctx context.Context) error {
	if !s.Pins {
		return nil
	}
	s.view.heading("ConfigPolicy prices gets onFailure: Rollback")
	if err := s.patch(ctx, &v1alpha1.ConfigPolicy{}, prices, `{"spec":{"onFailure":"Rollback"}}`); err != nil {
		return err
	}
	err := s.settlePrices(ctx, func(first, _ *config.Explanation) bool { return first.Reason == decision.ReasonConfigRolledBack })
	if err == nil {
		err = s.arePinned(ctx, firstUser, s.prices.first)
	}
	if err == nil {
		err = s.otherIsUntouched(ctx)
	}
	s.prices.took = s.Now().Sub(s.prices.began)
	return err
}

// arePinned waits until all Pods of a workload are ready with these pins.
func (s *story) arePinned(ctx context.Context, name, pins string) error {
	return s.await(ctx, "the Pods of "+name+" are not ready with their previous config", func(ctx context.Context) (bool, error) {
		pods, err := s.podsOf(ctx, name)
		return len(pods) > 0 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return !isReady(&p) || vocabulary.Pins.Get(p.Annotations) != pins
		}), err
	})
}

// rememberPins reads the pins of both workloads.
func (s *story) rememberPins(ctx context.Context) (err error) {
	if s.prices.first, err = s.pinsOf(ctx, firstUser); err != nil {
		return err
	}
	s.prices.other, err = s.pinsOf(ctx, otherUser)
	return err
}

// pinsOf are the pins of a workload's Pods, which are all of one revision.
func (s *story) pinsOf(ctx context.Context, name string) (string, error) {
	pods, err := s.podsOf(ctx, name)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if pins := vocabulary.Pins.Get(pods[i].Annotations); pins != "" {
			return pins, nil
		}
	}
	return "", fmt.Errorf("no Pod of %s has pins", name)
}

// podsOf are the Pods of a workload that are not being deleted.
func (s *story) podsOf(ctx context.Context, name string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := s.client.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": name}); err != nil {
		return nil, fmt.Errorf("list the Pods of %s: %w", name, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// replaceEarlierPod deletes a Pod of the earlier revision while the bad value rolls, and reads
// what its successor runs with.
func (s *story) replaceEarlierPod(ctx context.Context) error {
	pods, err := s.podsOf(ctx, firstUser)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(pods, s.isEarlier)
	if at < 0 {
		return fmt.Errorf("no Pod of the earlier revision of %s is left", firstUser)
	}
	if err := s.client.Delete(ctx, &pods[at]); err != nil {
		return fmt.Errorf("delete Pod %s: %w", pods[at].Name, err)
	}
	successor := &corev1.Pod{}
	err = s.await(ctx, "Pod "+pods[at].Name+" was not replaced", func(ctx context.Context) (bool, error) {
		now, err := s.podsOf(ctx, firstUser)
		for i := range now {
			if s.isEarlier(now[i]) && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == now[i].UID }) {
				*successor = now[i]
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return err
	}
	runs := successor.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name
	content := &corev1.ConfigMap{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: runs}, content); err != nil {
		return fmt.Errorf("get the config of Pod %s: %w", successor.Name, err)
	}
	s.prices.kept = fmt.Sprintf("%s was deleted; %s runs with ConfigMap %s: %s=%s", pods[at].Name, successor.Name, runs, mode, content.Data[mode])
	s.view.line("  An old Pod is rescheduled meanwhile: " + s.prices.kept)
	if content.Data[mode] != goodMode {
		return errors.New("a Pod of the earlier revision got the later config")
	}
	return nil
}

// isEarlier is true of a ready Pod of the revision before the bad value.
func (s *story) isEarlier(p corev1.Pod) bool {
	return isReady(&p) && vocabulary.Pins.Get(p.Annotations) == s.prices.first
}

// settlePrices shows both workloads until done is true.
func (s *story) settlePrices(ctx context.Context, done func(first, other *config.Explanation) bool) error {
	return s.settleOf(ctx, []string{firstUser, otherUser}, func(e []config.Explanation) bool {
		return len(e) == 2 && e[0].Name == firstUser && done(&e[0], &e[1])
	})
}

// otherIsUntouched fails if the second workload has other pins than before.
func (s *story) otherIsUntouched(ctx context.Context) error {
	pins, err := s.pinsOf(ctx, otherUser)
	if err == nil && pins != s.prices.other {
		err = fmt.Errorf("%s got the bad value", otherUser)
	}
	return err
}

func (s *story) patch(ctx context.Context, obj client.Object, name, patch string) error {
	obj.SetNamespace(s.Namespace)
	obj.SetName(name)
	if err := s.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(owner)); err != nil {
		return fmt.Errorf("edit %s: %w", name, err)
	}
	return nil
}

// await looks until something is true.
func (s *story) await(ctx context.Context, otherwise string, is func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, is); err != nil {
		return fmt.Errorf("%s: %w", otherwise, err)
	}
	return nil
}

// awaitPins waits until the API server points Pods at snapshots: a policy takes effect a moment
// after it was created.
func (s *story) awaitPins(ctx context.Context) error {
	return s.await(ctx, "the policy of pins has no effect", func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pinned", Namespace: s.Namespace, Annotations: map[string]string{vocabulary.Pins.Native: "cm/prices=0123456789"}}}
		ref := &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: prices}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: ref}}}}
		err := s.client.Create(ctx, pod, client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") {
			return false, nil // that of a new namespace does not exist yet
		}
		return err == nil && pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name != prices, client.IgnoreNotFound(err)
	})
}

// readKubelet finds out whether the kubelets are those of the laboratory, which have no version.
// Those that kwok simulates elsewhere would start any Pod before [story.startPod] does.
func (s *story) readKubelet(ctx context.Context) {
	nodes := &corev1.NodeList{}
	if err := s.client.List(ctx, nodes); err != nil || len(nodes.Items) == 0 {
		return // who may not read nodes has real ones
	}
	version := nodes.Items[0].Status.NodeInfo.KubeletVersion
	s.Simulated = s.Simulated || version == ""
	s.Pins = s.Pins && !strings.HasPrefix(version, "kwok")
}

// startKubelet starts the Pods that use the ConfigMap where kubelets are simulated: those read
// no config, so a bad value would do nothing. Ready it makes them in the time that simulated
// ones leave it, and crashing if the value is bad.
func (s *story) startKubelet(ctx context.Context) {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		watch, err := s.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.Namespace), client.MatchingLabels{"uses": prices})
		if err != nil {
			return
		}
		defer watch.Stop()
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && s.startPod(ctx, pod) != nil {
				return // and begin again with all Pods
			}
		}
	}, time.Second)
}

// startPod starts a Pod that was scheduled and has not started.
func (s *story) startPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return nil
	}
	content, c := &corev1.ConfigMap{}, &pod.Spec.Containers[0]
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: c.EnvFrom[0].ConfigMapRef.Name}, content); err != nil {
		return err //nolint:wrapcheck // it is only retried
	}
	now, ready := metav1.Now(), corev1.ConditionTrue
	status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}
	if content.Data[mode] == badMode {
		ready, status.Ready, status.RestartCount = corev1.ConditionFalse, false, 3
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{status}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
	return s.client.Status().Update(ctx, pod) //nolint:wrapcheck // the same
}
