package jobs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
)

// observed is a Job that is held, and the config that it refers to.
type observed struct {
	job *batchv1.Job
	// refused is why there are no pins in its namespace, empty if there are.
	refused    string
	references []pin.Reference
	config     *content.Known
}

// observe reads a Job and its config; nil if it is not held.
func (p *pinner) observe(ctx context.Context, name client.ObjectKey) (*observed, error) {
	job := &batchv1.Job{}
	if err := p.jobs.Get(ctx, name, job); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the Job %s: %w", name.Name, err)
	}
	if !pin.IsHeld(job) || job.DeletionTimestamp != nil {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	o := &observed{job: job, refused: p.where.Refusal(ctx, job.Namespace), references: pin.References(&job.Spec.Template.Spec), config: &content.Known{}}
	lookup := content.Source{Digests: content.Digesting(p.live), Namespaces: []string{name.Namespace}}.Lookup()
	if _, err := lookup.Observe(ctx, o.config, "", content.DemandOf(name.Namespace, &job.Spec.Template.Spec, nil, false)); err != nil {
		return nil, fmt.Errorf("read the config of Job %s: %w", name.Name, err)
	}
	return o, nil
}
