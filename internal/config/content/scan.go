package content

import (
	corev1 "k8s.io/api/core/v1"
)

// Demand is the config that one workload uses.
type Demand struct {
	Namespace string
	// Uses are all references; Wave are those that wave reads, in its order.
	Uses, Wave []Reference
	// Ignored are objects, or keys of them, whose changes do not count.
	Ignored []Reference
	// First is true of a workload without a hash. What it uses may have been created shortly
	// before it, so what the cache does not have is read all the same: otherwise the first
	// hash would be without it, and the next one would roll the workload.
	First bool
}

// DemandOf reads the config that a Pod uses; extra are the references by annotation.
func DemandOf(namespace string, pod *corev1.PodSpec, extra []Reference, pullSecrets bool) Demand {
	return Demand{Namespace: namespace, Uses: References(namespace, pod, extra, pullSecrets), Wave: waveReferences(namespace, pod, extra)}
}

// References are what the Pod uses: all that wave reads, and init containers,
// sidecars, and image pull Secrets if pullSecrets is true.
func References(namespace string, pod *corev1.PodSpec, extra []Reference, pullSecrets bool) []Reference {
	s := scan{namespace: namespace, items: true}
	s.volumes(pod.Volumes)
	s.refs = append(s.refs, extra...)
	s.containers(pod.Containers)
	s.containers(pod.InitContainers)
	if pullSecrets {
		s.pullSecrets(pod.ImagePullSecrets)
	}
	return s.refs
}

// waveReferences are what wave reads, in its order: volumes, extra annotations,
// envFrom, env.
func waveReferences(namespace string, pod *corev1.PodSpec, extra []Reference) []Reference {
	s := scan{namespace: namespace}
	s.volumes(pod.Volumes)
	for _, ref := range extra {
		if !ref.spaced {
			s.refs = append(s.refs, ref)
		}
	}
	s.containers(pod.Containers)
	return s.refs
}

// scan collects the references of one workload.
type scan struct {
	namespace string
	// items counts the items of plain volumes as keys, and reads CSI volumes; wave
	// uses the whole object, and does not read CSI volumes.
	items bool
	refs  []Reference
}

func (s *scan) volumes(volumes []corev1.Volume) {
	for i := range volumes {
		switch v := &volumes[i]; {
		case v.ConfigMap != nil:
			s.volume(ConfigMap, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
		case v.Secret != nil:
			s.volume(Secret, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
		case v.Projected != nil:
			s.projected(v.Projected.Sources)
		case v.CSI != nil && s.items:
			s.provided(v.CSI)
		}
	}
}

func (s *scan) volume(kind Kind, name string, items []corev1.KeyToPath, optional *bool) {
	if !s.items {
		items = nil
	}
	s.add(kind, name, keysOf(items, optional), optional)
}

// provided adds what the secrets store CSI driver mounts. It is never required:
// its versions are known only once a Pod runs.
func (s *scan) provided(v *corev1.CSIVolumeSource) {
	if class := v.VolumeAttributes[providerClassAttribute]; v.Driver == secretsStoreDriver && class != "" {
		optional := true
		s.add(SecretProviderClass, class, nil, &optional)
	}
}

func (s *scan) projected(sources []corev1.VolumeProjection) {
	for i := range sources {
		switch p := &sources[i]; {
		case p.ConfigMap != nil:
			s.add(ConfigMap, p.ConfigMap.Name, keysOf(p.ConfigMap.Items, p.ConfigMap.Optional), p.ConfigMap.Optional)
		case p.Secret != nil:
			s.add(Secret, p.Secret.Name, keysOf(p.Secret.Items, p.Secret.Optional), p.Secret.Optional)
		}
	}
}

// containers scans envFrom of all containers before env of any, because wave
// does.
func (s *scan) containers(containers []corev1.Container) {
	for i := range containers {
		s.envFrom(containers[i].EnvFrom)
	}
	for i := range containers {
		s.env(containers[i].Env)
	}
}

func (s *scan) envFrom(sources []corev1.EnvFromSource) {
	for i := range sources {
		switch e := &sources[i]; {
		case e.ConfigMapRef != nil:
			s.add(ConfigMap, e.ConfigMapRef.Name, nil, e.ConfigMapRef.Optional)
		case e.SecretRef != nil:
			s.add(Secret, e.SecretRef.Name, nil, e.SecretRef.Optional)
		}
	}
}

func (s *scan) env(env []corev1.EnvVar) {
	for i := range env {
		from := env[i].ValueFrom
		switch {
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			s.key(ConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
		case from.SecretKeyRef != nil:
			s.key(Secret, from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
		}
	}
}

func (s *scan) key(kind Kind, name, key string, optional *bool) {
	s.add(kind, name, []KeyUse{{Name: key, Required: !is(optional)}}, optional)
}

// pullSecrets are never required: a Pod starts without them if its image is
// already on the node.
func (s *scan) pullSecrets(secrets []corev1.LocalObjectReference) {
	optional := true
	for i := range secrets {
		s.add(Secret, secrets[i].Name, nil, &optional)
	}
}

// MostReferences bounds what one workload may cost: each reference is an object to be
// read and watched. A Pod template may have tens of thousands.
const MostReferences = 2000

func (s *scan) add(kind Kind, name string, keys []KeyUse, optional *bool) {
	if len(s.refs) >= MostReferences {
		return
	}
	s.refs = append(s.refs, Reference{
		Object:   Object{Kind: kind, Namespace: s.namespace, Name: name},
		Keys:     keys,
		Required: !is(optional),
	})
}

func keysOf(items []corev1.KeyToPath, optional *bool) []KeyUse {
	var keys []KeyUse
	for i := range items {
		keys = append(keys, KeyUse{Name: items[i].Key, Required: !is(optional)})
	}
	return keys
}

func is(b *bool) bool { return b != nil && *b }
