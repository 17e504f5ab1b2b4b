package show

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/zones"
)

// better is an error about an object, or what is nearer to the mistake: that the namespace
// does not exist, or that another name was probably meant.
func better(ctx context.Context, reader client.Reader, ref describe.Ref, err error) error {
	if apierrors.IsNotFound(err) { // of this object, or of another one that was read for it
		if missing := command.Missing(ctx, reader, ref); missing != nil {
			return missing
		}
		return err
	}
	if ref.Namespace == "" {
		return err
	}
	if missing := command.NamespaceMissing(ctx, reader, ref.Namespace); missing != nil {
		return missing
	}
	kind, known := describe.KindNamed(ref.Kind)
	if !known || !isNotFound(err) {
		return err
	}
	plain := command.NotFound(ctx, reader, kind, ref.Namespace, ref.Name)
	if advises(err) && !advises(plain) {
		return err
	}
	return plain
}

// advises is true of an error that says what to do.
func advises(err error) bool { return strings.Contains(err.Error(), "; ") }

func isNotFound(err error) bool {
	for _, missing := range []error{config.ErrNotFound, zones.ErrNotFound, plans.ErrNotFound, hub.ErrNotFound, history.ErrNotFound, explain.ErrNotFound} {
		if errors.Is(err, missing) {
			return true
		}
	}
	return false
}
