package config

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// defaultPolicy creates the ClusterConfigPolicy that an installation has from the beginning,
// once: one that a user has deleted or changed stays as it is. That it was created is recorded
// in the Lease of [BudgetLease].
type defaultPolicy struct {
	policy *v1alpha1.ClusterConfigPolicy
	reader client.Reader
	writer client.Writer
	lease  client.ObjectKey
	log    logr.Logger
}

// addDefaultPolicy lets the leader create the default policy once its kind can be read. A manager of some
// namespaces reads no policy of that kind, and one without a Lease could not record that it was created.
func addDefaultPolicy(mgr ctrl.Manager, o Options, kinds *policy.Kinds) error {
	if o.DefaultPolicy == nil || len(o.Namespaces) > 0 || o.LeaseNamespace == "" {
		return nil
	}
	d := &defaultPolicy{
		policy: o.DefaultPolicy, reader: mgr.GetAPIReader(), writer: mgr.GetClient(), lease: client.ObjectKey{Namespace: o.LeaseNamespace, Name: BudgetLease(o.LeaseName)},
		log: mgr.GetLogger().WithName("config"),
	}
	return kinds.Each(func(kind policy.KindOf) error {
		if kind.Name != policy.ClusterKind {
			return nil
		}
		if err := mgr.Add(d); err != nil {
			return fmt.Errorf("add the default policy: %w", err)
		}
		return nil
	})
}

// NeedLeaderElection is true: one manager creates it.
func (*defaultPolicy) NeedLeaderElection() bool { return true }

// Start implements a runnable of the manager.
func (d *defaultPolicy) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, againEvery, true, func(ctx context.Context) (bool, error) {
		err := d.ensure(ctx)
		if apierrors.IsForbidden(err) {
			d.log.Error(err, "the default ClusterConfigPolicy was not created; grant create on it, and get, create and update on the Lease", "lease", d.lease.String())
			return true, nil
		}
		if apierrors.IsInvalid(err) {
			d.log.Error(err, "the default ClusterConfigPolicy was not created; correct --default-config-policy-spec")
			return true, nil
		}
		return err == nil, nil
	})
	return nil
}

// againEvery is how long after a failed write another one is made.
const againEvery = 10 * time.Second

// ensure creates the policy, unless that was done before.
func (d *defaultPolicy) ensure(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := d.reader.Get(ctx, d.lease, lease)
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: d.lease.Namespace, Name: d.lease.Name}}
	case err != nil:
		return fmt.Errorf("read the record of the default policy: %w", err)
	case vocabulary.DefaultPolicy.Get(lease.Annotations) != "":
		return nil
	}
	created, err := createPolicy(ctx, d.writer, d.policy.DeepCopy())
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, vocabulary.DefaultPolicy.Native, policy.DefaultName)
	if err := writeLease(ctx, d.writer, lease); err != nil {
		return fmt.Errorf("record that the default policy was created: %w", err)
	}
	if created {
		d.log.Info("created the default policy: of the workloads that use a ConfigMap or Secret one is rolled first; to roll all at the same time, delete it",
			"policy", policy.ClusterKind+" "+policy.DefaultName)
	}
	return nil
}
