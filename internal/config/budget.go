package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// BudgetLease is the name of the Lease with the record of what was rolled, of managers
// that elect a leader by a Lease.
func BudgetLease(lease string) string { return lease + "-config" }

// budget keeps the record of what the manager has rolled, in an annotation of a Lease
// beside the one by which it was elected. It is written before the rolls that it
// permits, if no other manager has written it since. A nil budget keeps nothing.
type budget struct {
	reader client.Reader
	writer client.Writer
	key    client.ObjectKey
	// lease is as the API server has answered last, nil before it was read.
	lease *coordinationv1.Lease
	// spent is what was rolled. It may be less than what is recorded, because a
	// refused roll gives its place back.
	spent *decision.Budget
	// refused is true if the record must not be read or written: then it lasts no longer
	// than the manager.
	refused bool
	options decision.Options
}

// newBudget returns nil if workloads of several namespaces do not wait for one another.
func newBudget(reader client.Reader, writer client.Writer, o Options) *budget {
	if !o.SharesBudget() {
		return nil
	}
	b := &budget{reader: reader, writer: writer, options: o.Options}
	if o.LeaseNamespace == "" {
		b.refused = true
		return b
	}
	b.key = client.ObjectKey{Namespace: o.LeaseNamespace, Name: BudgetLease(o.LeaseName)}
	return b
}

// observe returns what was rolled.
func (b *budget) observe(ctx context.Context, now time.Time) (*decision.Budget, error) {
	switch {
	case b == nil:
		return nil, nil //nolint:nilnil // none is what a manager without limits has
	case b.refused && b.spent == nil:
		b.spent = &decision.Budget{}
	case b.lease == nil && !b.refused:
		return b.read(ctx, now)
	}
	return b.spent, nil
}

func (b *budget) read(ctx context.Context, now time.Time) (*decision.Budget, error) {
	lease := &coordinationv1.Lease{}
	err := b.reader.Get(ctx, b.key, lease)
	switch {
	case apierrors.IsForbidden(err):
		b.refuse(ctx, err)
		return b.observe(ctx, now)
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: b.key.Name}}
	case err != nil:
		return nil, fmt.Errorf("read what was rolled: %w", err)
	}
	recorded := decision.Budget{}
	_ = json.Unmarshal([]byte(vocabulary.ConfigBudget.Get(lease.Annotations)), &recorded) // what cannot be read counts as absent
	b.lease, b.spent = lease, recorded.Bounded(now, b.options)
	return b.spent, nil
}

// refuse goes on without the record.
func (b *budget) refuse(ctx context.Context, err error) {
	b.refused = true
	log.FromContext(ctx).Error(err, "what was rolled cannot be recorded, so a restart of the manager refills --update-rate and --max-rolling; "+
		"grant get, create and update on the Lease", "lease", b.key.String())
}

// record writes what is about to be rolled.
func (b *budget) record(ctx context.Context, p *decision.Plan) error {
	if b == nil || b.refused || p.Budget == b.spent {
		return nil
	}
	raw, err := json.Marshal(p.Budget)
	if err != nil {
		return fmt.Errorf("encode what is rolled: %w", err)
	}
	lease := b.lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, vocabulary.ConfigBudget.Native, string(raw))
	switch err = writeLease(ctx, b.writer, lease); {
	case apierrors.IsForbidden(err):
		b.refuse(ctx, err)
		return nil
	case err != nil:
		b.lease = nil // another manager may have written it
		return fmt.Errorf("record what is rolled: %w", err)
	}
	b.lease = lease
	return nil
}

// learn gives back what refused rolls had taken. It is true if others wait for that, and
// no watch shows it.
func (b *budget) learn(seen *decision.Observed, p *decision.Plan, done *results) (again bool) {
	var made []decision.Write
	refused := false
	for i := range *done {
		r := &(*done)[i]
		if isRefused(r.Err) {
			refused = refused || r.Write.Rolls && !ring.IsConflict(r.Err)
			continue
		}
		made = append(made, r.Write)
	}
	if b != nil && b.spent != nil {
		b.spent = seen.After(made, b.options)
	}
	return refused && slices.ContainsFunc(p.Holds, func(h rollout.Hold) bool {
		return h.Reason == rollout.ReasonBudget || h.Reason == rollout.ReasonRate
	})
}

// isRefused is true if a write certainly was not made.
func isRefused(err error) bool {
	if errors.As(err, &unmade{}) {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
	}
	return ring.IsConflict(err)
}
