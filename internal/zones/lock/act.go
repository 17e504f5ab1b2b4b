package lock

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
)

const (
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	// attempts bounds how often a change is decided again because others were faster.
	attempts = 20
)

// Keeper writes the status of groups, each time with the resourceVersion that the
// new status was made from.
type Keeper struct {
	// Live reads from the API server itself.
	Live   client.Reader
	Writer client.StatusClient
}

// Change makes a change to the status as it is, and writes it if it is one. It is
// made again if another client was faster.
func (k Keeper) Change(ctx context.Context, key client.ObjectKey, change func(*v1alpha1.RolloutGroupStatus) bool) error {
	var err error
	for range attempts {
		group := &v1alpha1.RolloutGroup{}
		if err := k.Live.Get(ctx, key, group); err != nil {
			return fmt.Errorf("get RolloutGroup %s: %w", key.Name, err)
		}
		if !change(&group.Status) {
			return nil
		}
		if err = k.Write(ctx, group); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// Write writes a status, if no client has written the group since it was read.
func (k Keeper) Write(ctx context.Context, group *v1alpha1.RolloutGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := k.Writer.Status().Update(ctx, group, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("write the status of RolloutGroup %s: %w", group.Name, err)
	}
	return nil
}
