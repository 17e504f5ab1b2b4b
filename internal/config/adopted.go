package config

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// adoptedIn is what some records say of the workloads that were taken over.
func adoptedIn(records []v1alpha1.ConfigRollout) (decision.Adopted, map[workload.Name]workload.Baseline) {
	is, all := decision.Adopted{Records: map[string]*v1alpha1.ConfigRollout{}}, map[workload.Name]workload.Baseline{}
	for i := range records {
		recorded, ok := verdict.Adopted(&records[i])
		if !ok {
			continue
		}
		is.Records[records[i].Namespace] = &records[i]
		maps.Copy(all, recorded)
	}
	return is, all
}

// addUnlisted adds those that exist, and are not tracked now.
func (o *observer) addUnlisted(ctx context.Context, observed *decision.Observed, all map[workload.Name]workload.Baseline) error {
	if o.readOnly {
		return nil
	}
	for i := range observed.Workloads {
		delete(all, observed.Workloads[i].Name)
	}
	for name := range all {
		obj := workload.New(name.Kind)
		err := o.workloads.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, obj)
		switch {
		case apierrors.IsNotFound(err):
			delete(all, name)
		case err != nil:
			return fmt.Errorf("look whether %s exists: %w", name, err)
		}
	}
	observed.Adopted.Unlisted = all
	return nil
}
