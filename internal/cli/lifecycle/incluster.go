package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// checkInCluster refuses flags that say where a package is that is installed already.
func (i *install) checkInCluster() error {
	from := i.from.Origin(i.env)
	switch {
	case !i.inCluster:
		return nil
	case from.Repository != "":
		return errors.New("--in-cluster: the package is not read from a repository; leave out --repo")
	case i.skipInstance:
		return errors.New("--in-cluster: only an Instance is created; leave out --skip-instance")
	case i.createNamespace:
		return errors.New("--in-cluster: the namespace has the OperatorVersion already; leave out --create-namespace")
	default:
		return nil
	}
}

// runInCluster creates an Instance of an OperatorVersion that is installed.
func (i *install) runInCluster(ctx context.Context, operator, name string) error {
	version, err := i.installed(ctx, operator)
	if err != nil {
		return err
	}
	instance, err := i.instanceOf(operator, version.Name, name)
	if err != nil {
		return err
	}
	chosen, problems := choice.Choose(choice.Change{Namespace: i.namespace, Want: &instance.Spec, New: &version.Spec})
	if len(problems) > 0 {
		return fmt.Errorf("instance/%s: %s; see its parameters with: kubectl get operatorversion %s -n %s -o yaml", name, choice.Sentences(problems), version.Name, i.namespace)
	}
	if err := checkTasks(instance, &version.Spec, chosen.Plan); err != nil {
		return err
	}
	if err := i.checkInstance(ctx, instance); err != nil {
		return err
	}
	r := i.results()
	if err := i.ensureInstance(ctx, r, instance); err != nil {
		return err
	}
	return i.finish(ctx, r, instance, choice.NewVersion(version), chosen.Plan)
}

// installed is the latest OperatorVersion of a package in the namespace that the flags
// permit.
func (i *install) installed(ctx context.Context, operator string) (*v1beta1.OperatorVersion, error) {
	list := &v1beta1.OperatorVersionList{}
	if err := i.client.List(ctx, list, client.InNamespace(i.namespace)); err != nil {
		return nil, fmt.Errorf("list operatorversions: %w", err)
	}
	from := i.from.Origin(i.env)
	var latest *v1beta1.OperatorVersion
	var others []string
	for k := range list.Items {
		v := &list.Items[k]
		if v.Spec.Operator.Name != operator {
			continue
		}
		others = append(others, versionText(&v.Spec))
		isWanted := (from.OperatorVersion == "" || v.Spec.Version == from.OperatorVersion) && (from.AppVersion == "" || v.Spec.AppVersion == from.AppVersion)
		if isWanted && (latest == nil || notGreater(&latest.Spec, &v.Spec) == "") {
			latest = v
		}
	}
	switch {
	case latest != nil:
		return latest, nil
	case len(others) == 0:
		return nil, fmt.Errorf("package %s is not installed in namespace %s; see what is with: %s, or install it without --in-cluster",
			operator, i.namespace, i.next("package", "get", "operatorversions"))
	default:
		slices.Sort(others)
		return nil, fmt.Errorf("package %s is not installed in namespace %s in version %s; choose from %s",
			operator, i.namespace, strings.TrimSpace(from.OperatorVersion+" "+from.AppVersion), message.Join(others, ", ", func(s string) string { return s }))
	}
}
