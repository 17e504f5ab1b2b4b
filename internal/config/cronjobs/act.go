package cronjobs

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// act makes the write of a plan: of a CronJob or a Job as it was read.
func (r *runner) act(ctx context.Context, o *observed, p *plan) error {
	return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		switch {
		case p.create != nil:
			// Its name is taken by the Job that an earlier pass has created, which the cache shows soon.
			return r.writer.Create(ctx, p.create, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
		case p.register:
			return r.register(ctx, o)
		case p.resume != "":
			change := map[string]any{"spec": map[string]any{"suspend": false}, "metadata": map[string]any{
				"annotations": map[string]any{vocabulary.ConfigSeen.Native: p.resume}, "labels": map[string]any{vocabulary.ConfigRun.Native: started},
			}}
			return patch(ctx, r.writer, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.job.Namespace, Name: o.job.Name}}, o.job, change, client.DisableReadYourWritesConsistency)
		case p.record != "":
			change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{vocabulary.ConfigSeen.Native: p.record}}}
			return patch(ctx, r.writer, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: o.cronJob.Namespace, Name: o.cronJob.Name}}, o.cronJob, change)
		default:
			return nil
		}
	})
}

// patch changes an object as it was read.
func patch(ctx context.Context, w client.Writer, obj, read client.Object, change map[string]any, options ...client.PatchOption) error {
	merge, err := ring.MergePatch(read.GetUID(), read.GetResourceVersion(), change)
	if err != nil {
		return err
	}
	if err := w.Patch(ctx, obj, merge, append(options, client.FieldOwner(kube.FieldOwner))...); err != nil {
		return fmt.Errorf("patch %s: %w", read.GetName(), err)
	}
	return nil
}

// register adds the Job to those that Kubernetes' controller counts as active, so that it starts none beside it.
func (r *runner) register(ctx context.Context, o *observed) error {
	_, err := ring.UpdateStatus(ctx, r.status, o.cronJob, func(c *batchv1.CronJob) {
		c.Status.Active = append(c.Status.Active, corev1.ObjectReference{
			APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: o.job.Namespace, Name: o.job.Name, UID: o.job.UID, ResourceVersion: o.job.ResourceVersion,
		})
	}, ring.ReadBack)
	return err
}
