package content

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reach is how a new content of an object gets to containers that run already. Of several ways, the
// greatest counts.
type Reach int

const (
	// ReachNone is that of an object that no container reads: a volume that is not mounted, or an
	// object that only an annotation names.
	ReachNone Reach = iota
	// ReachRestart is that of an environment and of subPath mounts: the kubelet reads the object when
	// it starts a container, also one that it restarts in a Pod that stays.
	ReachRestart
	// ReachRunning is that of a mounted volume: the kubelet writes the new content into Pods that run,
	// within about a minute.
	ReachRunning
)

// ReachOf is how a new content of an object of the Pod's namespace gets to its containers.
func ReachOf(pod *corev1.PodSpec, kind Kind, name string) Reach {
	reach, all := ReachNone, slices.Concat(pod.Containers, pod.InitContainers)
	for i := range all {
		only := scan{}
		only.containers(all[i : i+1])
		if refersTo(only.refs, kind, name) {
			reach = max(reach, ReachRestart)
		}
	}
	for i := range pod.Volumes {
		only := scan{}
		only.volumes(pod.Volumes[i : i+1])
		if refersTo(only.refs, kind, name) {
			reach = max(reach, mountedIn(pod, pod.Volumes[i].Name))
		}
	}
	return reach
}

func refersTo(refs []Reference, kind Kind, name string) bool {
	return slices.ContainsFunc(refs, func(r Reference) bool { return r.Object.Kind == kind && r.Object.Name == name })
}

// mountedIn is how a volume gets to the containers that mount it. Init containers that have ended do
// not see a new content; sidecars, which are init containers that stay, do.
func mountedIn(pod *corev1.PodSpec, volume string) Reach {
	reach := ReachNone
	for _, containers := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
		for i := range containers {
			for _, m := range containers[i].VolumeMounts {
				switch {
				case m.Name != volume:
				case m.SubPath != "" || m.SubPathExpr != "" || isOver(pod, &containers[i]):
					reach = max(reach, ReachRestart)
				default:
					reach = ReachRunning
				}
			}
		}
	}
	return reach
}

// isOver is true of an init container that ends before the others start.
func isOver(pod *corev1.PodSpec, c *corev1.Container) bool {
	isInit := slices.ContainsFunc(pod.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
	return isInit && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways)
}
