package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// act writes the snapshots of a plan, and then the Job as it was read.
func (p *pinner) act(ctx context.Context, o *observed, d *plan) (err error) {
	change := d.change(o)
	if change == nil {
		return nil
	}
	p.keeper.While(func() {
		for _, failed := range p.keeper.Ensure(ctx, d.snapshots) {
			err = errors.Join(err, failed)
		}
		if err == nil {
			err = write(ctx, p.writer, o.job, change)
		}
	})
	return err
}

// write changes a Job, if no client has written it since it was read.
func write(ctx context.Context, w client.Writer, read *batchv1.Job, change map[string]any) error {
	patch, err := ring.MergePatch(read.UID, read.ResourceVersion, change)
	if err != nil {
		return err
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: read.Namespace, Name: read.Name}}
	err = ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		return w.Patch(ctx, job, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	})
	if err != nil {
		return fmt.Errorf("pin Job %s: %w", read.Name, err)
	}
	return nil
}

// Release lets all Jobs start that are held, without pins, because the manager is about to be
// removed: those of a namespace, of all if it is empty. It returns their names.
func Release(ctx context.Context, c client.Client, namespace string) ([]client.ObjectKey, error) {
	jobs := &batchv1.JobList{}
	if err := c.List(ctx, jobs, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	var released []client.ObjectKey
	var failed error
	for i := range jobs.Items {
		if !pin.IsHeld(&jobs.Items[i]) {
			continue
		}
		key := client.ObjectKeyFromObject(&jobs.Items[i])
		if err := release(ctx, c, key); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		released = append(released, key)
	}
	return released, failed
}

// release lets a Job start if it is still held. Kubernetes' controller writes to it meanwhile, so
// that a conflict is tried again.
func release(ctx context.Context, c client.Client, key client.ObjectKey) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o := &observed{job: &batchv1.Job{}}
		if err := c.Get(ctx, key, o.job); err != nil || !pin.IsHeld(o.job) {
			return client.IgnoreNotFound(err)
		}
		d := plan{state: pin.JobPinned + " without pins: Spillway was removed"}
		return write(ctx, c, o.job, d.change(o))
	})
	if err != nil {
		return fmt.Errorf("release Job %s in namespace %s: %w", key.Name, key.Namespace, err)
	}
	return nil
}
