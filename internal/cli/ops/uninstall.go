package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/jobs"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// NewUninstall returns the command uninstall.
func NewUninstall(env command.Environment) *cobra.Command {
	u := &uninstall{now: env.Now}
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Release suspended workloads, and remove what install applied",
		Example: "  spillway uninstall -n spillway-system",
		Long: "Remove what install applied, in an order that leaves no workload blocked. First what\n" +
			"could suspend another workload is removed, then the manager. Then every suspended\n" +
			"workload is released, whether its config exists or not. Then the rest is removed.\n" +
			"\n" +
			"What the manager wrote on workloads stays, so that nothing rolls. The namespace, the\n" +
			"kinds and their objects stay too. Nothing is removed while Instances with a cleanup\n" +
			"plan exist, because no manager would run it: delete them first, or use\n" +
			"--release-instances.",
		Args: command.None("name the namespace with -n"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := u.cluster.Client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), u.timeout)
			defer cancel()
			u.client, u.out = u.dryRun.Client(c), cmd.OutOrStdout()
			return u.run(ctx)
		},
	}
	u.cluster.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&u.namespace, "namespace", "n", manifests.DefaultNamespace, "namespace that Spillway runs in")
	cmd.Flags().StringSliceVar(&u.watched, "watch-namespaces", nil, "namespaces to release workloads in (default: those that the manager watches)")
	cmd.Flags().BoolVar(&u.releaseInstances, "release-instances", false, "release Instances without running their cleanup plans; they and their objects stay until they are deleted")
	cmd.Flags().BoolVar(&u.keepInstances, "keep-instances", false, "leave Instances that have a cleanup plan as they are, for KUDO's manager, which runs it")
	cmd.MarkFlagsMutuallyExclusive("release-instances", "keep-instances")
	cmd.Flags().BoolVar(&u.prepare, "prepare", false, "stop before the rest is removed, where another tool removes what it installed")
	command.NameFlag(cmd, &u.output)
	u.dryRun.AddFlag(cmd.Flags())
	cmd.Flags().DurationVar(&u.timeout, "timeout", 2*time.Minute, "how long the command may take")
	return cmd
}

type uninstall struct {
	cluster   command.Cluster
	dryRun    command.DryRun
	namespace string
	watched   []string
	// pinned are the namespaces with pins.
	pinned  []string
	timeout time.Duration
	output  string
	now     func() time.Time
	// prepare leaves the rest to the tool that installed it.
	prepare bool
	// releaseInstances takes from Instances what only the plans ring would, and keepInstances leaves it to another manager.
	releaseInstances, keepInstances bool

	client client.Client
	out    io.Writer
	// removed is true once something was.
	removed bool
	// plans is true if the installed manager runs the plans ring.
	plans bool
}

// run takes the steps in an order that leaves no workload blocked.
func (u *uninstall) run(ctx context.Context) error {
	removing := func(kinds []schema.GroupVersionKind) func(context.Context) error {
		return func(ctx context.Context) error { return u.remove(ctx, kinds) }
	}
	steps := []func(context.Context) error{
		u.findManager,
		u.checkInstances,                     // no Instance is blocked that needs the manager
		removing(manifests.AdmissionKinds()), // nothing is suspended from now on
		removing(manifests.ManagerKinds()),   // no manager suspends or releases at the same time
		u.releaseSuspended,                   // every workload can be scheduled
		u.resumeJobs, u.removeRecords,
		u.letInstancesGo,    // every Instance can be deleted
		u.removeCertificate, // which the manager made for itself
	}
	if !u.prepare {
		steps = append(steps, removing(manifests.OtherKinds())) // the rest, the permissions last
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if u.prepare || u.output != "" {
		return nil
	}
	return u.tellRest(ctx)
}

// releaseSuspended lets every workload be scheduled. A dry run only names those that are
// suspended, because nothing would change while it waits for that.
func (u *uninstall) releaseSuspended(ctx context.Context) error {
	report := func(n workload.Name) {
		u.tell(strings.ToLower(n.Kind)+"/"+n.Name, " in namespace "+n.Namespace+" released")
	}
	var err error
	if u.dryRun.On() {
		var traces []config.Trace
		traces, err = config.Traces(ctx, u.client)
		for i := range traces {
			if t := &traces[i]; t.Suspended() && (len(u.watched) == 0 || slices.Contains(u.watched, t.Namespace)) {
				report(t.Name)
			}
		}
	} else {
		err = config.Release(ctx, u.client, config.Options{Now: u.now, Namespaces: u.watched}, report)
	}
	if err != nil {
		return fmt.Errorf("release what is suspended: %w", err)
	}
	return nil
}

func (u *uninstall) removeRecords(ctx context.Context) error {
	for _, namespace := range kube.OrAll(u.watched) {
		records := &v1alpha1.ConfigRolloutList{}
		err := u.client.List(ctx, records, client.InNamespace(namespace))
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list the records of what has failed: %w", err)
		}
		for i := range records.Items {
			if err := u.removeRecord(ctx, &records.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (u *uninstall) removeRecord(ctx context.Context, r *v1alpha1.ConfigRollout) error {
	if !u.dryRun.On() {
		if err := u.client.Delete(ctx, r); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ConfigRollout %s: %w", r.Name, err)
		}
	}
	u.tell("configrollout/"+r.Name, " in namespace "+r.Namespace+" deleted")
	return nil
}

func (u *uninstall) resumeJobs(ctx context.Context) error {
	for _, namespace := range u.pinned {
		released, err := jobs.Release(ctx, u.client, namespace)
		for _, name := range released {
			u.tell("job/"+name.Name, " in namespace "+name.Namespace+" resumed, without pins")
		}
		if err != nil {
			return fmt.Errorf("resume Jobs that wait for pins: %w", err)
		}
	}
	return nil
}

func (u *uninstall) tell(name, done string) {
	if done += u.dryRun.Note(); u.output != "" {
		done = ""
	}
	_, _ = fmt.Fprintln(u.out, name+done)
}

// tellRest says what stays, and how to remove it: the kinds, because their objects would go
// with them, and the namespace, which may hold what is not ours.
func (u *uninstall) tellRest(ctx context.Context) error {
	if !u.removed {
		_, _ = fmt.Fprintf(u.out, "Nothing is installed in namespace %s.\n", u.namespace)
		return nil
	}
	kinds := kube.MetadataList(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := u.client.List(ctx, kinds, client.MatchingLabels(manifests.ManagerLabels())); err != nil {
		return fmt.Errorf("look for kinds that stay: %w", err)
	}
	_, _ = fmt.Fprintf(u.out, "\nNamespace %s stays. To remove it, with all that is in it:\n  kubectl delete namespace %s\n", u.namespace, u.namespace)
	if len(kinds.Items) > 0 {
		_, _ = fmt.Fprintf(u.out, "%d kinds stay, with their objects. To remove them, once no other installation uses them:\n  kubectl delete customresourcedefinitions -l %s\n",
			len(kinds.Items), labels.FormatLabels(manifests.ManagerLabels()))
	}
	return nil
}

// findManager finds the namespaces that the installed manager watches, all if
// there is none, and whether it runs plans.
func (u *uninstall) findManager(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	err := u.client.List(ctx, list, client.InNamespace(u.namespace), client.MatchingLabels(manifests.ManagerLabels()))
	if err != nil {
		return fmt.Errorf("look for the manager: %w", err)
	}
	for _, d := range list.Items {
		args := manifests.ArgumentsOf(&d)
		if len(u.watched) == 0 {
			u.watched = args.Namespaces()
		}
		if pins := args.PinNamespaces(); pins.ReachAll() {
			u.pinned = []string{""}
		} else {
			u.pinned = append(u.pinned, pins.Names...)
		}
		if rings := args.Value("rings", ""); rings != "" {
			u.plans = slices.Contains(strings.Split(rings, ","), manager.RingPlans)
		}
	}
	return nil
}

// checkInstances is an error if there are Instances that could never be deleted
// without the manager.
func (u *uninstall) checkInstances(ctx context.Context) error {
	if !u.plans || u.releaseInstances || u.keepInstances {
		return nil
	}
	held, err := plans.Held(ctx, u.client, u.watched)
	if err != nil || len(held) == 0 {
		return err
	}
	var names []string
	for _, name := range held {
		names = append(names, name.String())
	}
	return fmt.Errorf("nothing was removed: without the manager the cleanup plans of %s cannot run, and these cannot be deleted; "+
		"delete them first, or use --release-instances to release them without their plans", listed(names))
}

// mostListed is how many names a sentence has room for.
const mostListed = 10

func listed(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (u *uninstall) letInstancesGo(ctx context.Context) error {
	if !u.releaseInstances {
		return nil
	}
	report := func(name types.NamespacedName) {
		u.tell("instance/"+name.Name, " in namespace "+name.Namespace+" released")
	}
	var err error
	if u.dryRun.On() {
		var held []types.NamespacedName
		held, err = plans.Held(ctx, u.client, u.watched)
		for _, name := range held {
			report(name)
		}
	} else {
		err = plans.Release(ctx, u.client, u.watched, report)
	}
	if err != nil {
		return fmt.Errorf("release Instances: %w", err)
	}
	return nil
}

// remove deletes what install applied of these kinds, and waits until it is gone.
func (u *uninstall) remove(ctx context.Context, kinds []schema.GroupVersionKind) error {
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := u.client.List(ctx, list, client.MatchingLabels(manifests.SelectInstalled(u.namespace)))
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // an older API server does not have the kind
		}
		if err != nil {
			return fmt.Errorf("look for what was installed: %w", err)
		}
		for i := range list.Items {
			if err := u.removeOne(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeCertificate deletes the Secrets of a generated certificate and of keys, and none that
// another manager has filled.
func (u *uninstall) removeCertificate(ctx context.Context) error {
	return errors.Join(u.removeSecret(ctx, admission.SecretName), u.removeSecret(ctx, admission.KeysSecretName))
}

func (u *uninstall) removeSecret(ctx context.Context, name string) error {
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	err := u.client.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the certificate: %w", err)
	case name == admission.SecretName && secret.GetLabels()[admission.ManagedByLabel] != admission.ManagedBy && !manifests.IsInstalled(secret, u.namespace):
		return nil
	default:
		return u.removeOne(ctx, secret)
	}
}

func (u *uninstall) removeOne(ctx context.Context, obj *unstructured.Unstructured) error {
	what := strings.ToLower(obj.GetKind()) + "/" + obj.GetName()
	uid := obj.GetUID()
	err := u.client.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	if !u.dryRun.On() {
		if err := u.awaitGone(ctx, obj); err != nil {
			return fmt.Errorf("wait until %s is gone: %w", what, err)
		}
	}
	u.removed = true
	u.tell(what, " deleted")
	return nil
}

func (u *uninstall) awaitGone(ctx context.Context, obj *unstructured.Unstructured) error {
	uid := obj.GetUID()
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) { //nolint:wrapcheck // the caller wraps it
		err := u.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) || (err == nil && obj.GetUID() != uid) {
			return true, nil
		}
		return false, client.IgnoreNotFound(err)
	})
}

// prune removes the webhook configurations and policies of rings that are not
// installed any more, or that do not declare them any more, and the dashboard if it is not. A note follows what is said of each.
func prune(ctx context.Context, w io.Writer, c client.Client, o *manifests.Options, installed []*unstructured.Unstructured, note string) error {
	namespace := o.Namespace
	for _, kind := range manifests.AdmissionKinds() {
		if err := pruneKind(ctx, w, c, kind, installed, note, client.MatchingLabels(manifests.InstalledLabels(namespace)), client.HasLabels{vocabulary.Ring}); err != nil {
			return err
		}
	}
	if err := prunePins(ctx, w, c, o, installed, note); err != nil {
		return err
	}
	return pruneDashboard(ctx, w, c, namespace, installed, note)
}

// prunePins takes the permissions of pins away where there are none any more: no policy limits them there.
func prunePins(ctx context.Context, w io.Writer, c client.Client, o *manifests.Options, installed []*unstructured.Unstructured, note string) error {
	for _, kind := range []string{"RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole"} {
		err := pruneKind(ctx, w, c, rbacv1.SchemeGroupVersion.WithKind(kind), installed, note,
			client.MatchingLabels(manifests.InstalledLabels(o.Namespace)), client.MatchingFields{"metadata.name": o.Values.PinRole()})
		if err != nil && !apierrors.IsForbidden(err) { // who may not list them in all namespaces may not remove them
			return err
		}
	}
	return nil
}

// pruneDashboard removes the dashboard if it is not installed any more, or in another namespace.
func pruneDashboard(ctx context.Context, w io.Writer, c client.Client, namespace string, installed []*unstructured.Unstructured, note string) error {
	labels := client.MatchingLabels(manifests.InstalledDashboardLabels(namespace))
	found := &appsv1.DeploymentList{}
	if err := c.List(ctx, found, labels); err != nil {
		return fmt.Errorf("look for what is not installed any more: %w", err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	for _, kind := range append(manifests.ManagerKinds(), manifests.OtherKinds()...) {
		if err := pruneKind(ctx, w, c, kind, installed, note, labels); err != nil {
			return err
		}
	}
	return nil
}

func pruneKind(ctx context.Context, w io.Writer, c client.Client, kind schema.GroupVersionKind, installed []*unstructured.Unstructured, note string, which ...client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := c.List(ctx, list, which...)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil // an older API server does not have the kind
	}
	if err != nil {
		return fmt.Errorf("look for what is not installed any more: %w", err)
	}
	for i := range list.Items {
		if err := pruneOne(ctx, w, c, &list.Items[i], installed, note); err != nil {
			return err
		}
	}
	return nil
}

func pruneOne(ctx context.Context, w io.Writer, c client.Client, obj *unstructured.Unstructured, installed []*unstructured.Unstructured, note string) error {
	if slices.ContainsFunc(installed, func(i *unstructured.Unstructured) bool {
		return i.GetKind() == obj.GetKind() && i.GetNamespace() == obj.GetNamespace() && i.GetName() == obj.GetName()
	}) {
		return nil
	}
	what, uid, version := strings.ToLower(obj.GetKind())+"/"+obj.GetName(), obj.GetUID(), obj.GetResourceVersion()
	err := c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", what, err)
	}
	_, _ = fmt.Fprintf(w, "%s deleted%s\n", what, note)
	return nil
}
