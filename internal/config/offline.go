package config

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
)

// Offline is the ring without a manager: the same passes, asked for one by one.
type Offline struct{ *reconciler }

// NewOffline makes the ring run upon what stands for a cluster.
func NewOffline(on kube.Offline, o Options) *Offline {
	return &Offline{&reconciler{
		observer: observer{options: o, workloads: on, digests: digestingReader{on}, values: on, provided: true, memory: memory{}},
		writer:   on,
		reporter: newReporter(on.Events(), o.Now),
	}}
}

// Status explains every workload in sight, and writes nothing.
func (o *Offline) Status(ctx context.Context) ([]Explanation, error) {
	observed, err := o.observer.observe(ctx)
	if err != nil {
		return nil, err
	}
	return explained(observed, o.observer.options), nil
}

// Lacks says what a Pod cannot start without and is not there, each as a clause.
func Lacks(ctx context.Context, reader client.Reader, namespace string, pod *corev1.PodSpec) ([]string, error) {
	p := &pass{observer: &observer{digests: digestingReader{reader}}, facts: map[Object]facts{}}
	r := recollection{refs: references(namespace, pod, nil, false), facts: map[Object]facts{}}
	for _, ref := range r.refs {
		f, err := p.factsOf(ctx, ref.Object)
		if err != nil {
			return nil, err
		}
		r.facts[ref.Object] = f
	}
	var lacks []string
	for _, m := range r.missing() {
		lacks = append(lacks, m.String(namespace))
	}
	return lacks, nil
}
