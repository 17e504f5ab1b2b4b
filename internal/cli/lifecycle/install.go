package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/dependency"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type install struct {
	operation

	createNamespace, skipInstance, inCluster bool
	serviceAccount                           string
}

func newInstall(env command.Environment) *cobra.Command {
	i := &install{operation: operation{env: env}}
	cmd := &cobra.Command{
		Use: "install PACKAGE NAME", Short: "Install an Instance of a package",
		Long: "Create the Operator and the OperatorVersion of a package, and an Instance of it, whose plan\n" +
			"deploy then runs. The packages that it needs are found and installed first. Parameters are\n" +
			"checked before anything is written. What exists with the same content is left as it is; what\n" +
			"exists with other content is never overwritten.",
		Example: "  spillway package install ./zookeeper zk -n shop --wait\n" +
			"  spillway package install zookeeper-0.3.0.tgz zk -n shop -p NODES=5 -P zk.yaml\n" +
			"  spillway package install ./zookeeper zk -n shop --dry-run=client -o yaml\n" +
			"  spillway package install oci://registry.example.com/zookeeper:0.3.0 zk -n shop\n" +
			"  spillway package install zookeeper zk2 -n shop --in-cluster",
		Args: command.Exactly(2, "name a package and the Instance, as in: spillway package install ./zookeeper zk"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(i.checkInCluster(), checkName(command.InstanceName(args[1])), command.CheckName("service-account", i.serviceAccount)); err != nil {
				return err
			}
			if err := i.begin(cmd); err != nil {
				return err
			}
			if i.inCluster {
				return i.runInCluster(cmd.Context(), args[0], command.InstanceName(args[1]))
			}
			return i.run(cmd.Context(), args[0], command.InstanceName(args[1]))
		},
	}
	i.addFlags(cmd)
	i.from.AddFlags(cmd.Flags())
	i.settings.addFlags(cmd)
	i.addWait(cmd, "the plan has ended and the Instance is ready, and show its progress")
	i.addDryRun(cmd)
	i.kubeVersion.AddFlag(cmd.Flags())
	cmd.Flags().Lookup("kube-version").Usage = "version of Kubernetes for which --dry-run=client warns of API versions that are not served"
	cmd.Flags().BoolVar(&i.skipInstance, "skip-instance", false, "create the Operator and the OperatorVersion, and no Instance")
	cmd.Flags().BoolVar(&i.inCluster, "in-cluster", false, "create an Instance of a package that is installed in the namespace, and read no other package: the latest version, or that of --operator-version and --app-version")
	cmd.Flags().StringVar(&i.serviceAccount, "service-account", "", "name of the ServiceAccount as which plans of the Instance act (default: that of the manager's --default-service-account, or the manager)")
	cmd.Flags().BoolVar(&i.createNamespace, "create-namespace", false, "create the namespace if it does not exist, from the manifest of the package if it has one")
	return cmd
}

const maxName = 63

// checkName refuses a name that no object can have, before anything is written.
func checkName(name string) error {
	switch {
	case len(validation.NameIsDNSSubdomain(name, false)) > 0:
	case len(name) > maxName:
		return fmt.Errorf("%q cannot be the name of an Instance: it has %d characters, and may have %d, because it is the value of a label of all objects", name, len(name), maxName)
	default:
		return nil
	}
	return fmt.Errorf("%q cannot be the name of an Instance: use lowercase letters, digits, - and . and begin and end with a letter or a digit, as in: my-app", name)
}

func (i *install) begin(cmd *cobra.Command) (err error) {
	if !i.dryRun.IsClient() || i.inCluster {
		if cmd.Flags().Changed("kube-version") {
			return errors.New("--kube-version: the API server knows its version; leave it out, or add --dry-run=client")
		}
		return i.connect(cmd)
	}
	i.out = cmd.OutOrStdout()
	if err := i.check(); err != nil {
		return err
	}
	if i.namespace, err = i.cluster.NamespaceOffline(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(i.env.Err, "note: the cluster is not asked: the namespace is assumed to be %s, nothing to exist, and kinds that are not Kubernetes' own to be namespaced; --dry-run=server asks\n", i.namespace)
	return nil
}

func (i *install) run(ctx context.Context, from, name string) error {
	p, needed, err := i.load(ctx, from)
	if err != nil {
		return err
	}
	version, err := p.VersionObject()
	if err != nil {
		return err
	}
	instance, err := i.instanceOf(p.Operator.Name, version.Name, name)
	if err != nil {
		return err
	}
	chosen, problems := choice.Choose(choice.Change{Namespace: i.namespace, Want: &instance.Spec, New: &version.Spec})
	if len(problems) > 0 && !i.skipInstance {
		return fmt.Errorf("instance/%s: %s; list them with: spillway package list parameters %s", name, choice.Sentences(problems), shell.Quote(from))
	}
	if err := checkTasks(instance, &version.Spec, chosen.Plan); err != nil && !i.skipInstance {
		return err
	}
	version.Namespace = i.namespace
	r := i.results()
	if err := i.write(ctx, r, p, needed, version, instance); err != nil {
		return err
	}
	if i.skipInstance {
		return r.end()
	}
	return i.finish(ctx, r, instance, choice.NewVersion(version), chosen.Plan)
}

// instanceOf is the Instance that is wanted, with the label that KUDO sets.
func (i *install) instanceOf(operator, version, name string) (*v1beta1.Instance, error) {
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: i.namespace, Labels: map[string]string{vocabulary.OperatorLabel: operator}}}
	instance.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	instance.Spec.OperatorVersion.Name, instance.Spec.ServiceAccountName = version, i.serviceAccount
	return instance, i.set(&instance.Spec)
}

// write creates the objects, after it has seen that none exists with other content.
func (i *install) write(ctx context.Context, r *results, p *packages.Package, needed []*packages.Package, version *v1beta1.OperatorVersion, instance *v1beta1.Instance) error {
	wanted, operator := version.DeepCopy(), i.operatorOf(p) // the others become what was read
	ofNamespace, ofOthers := both(                          // in a namespace that is created here, nothing exists
		func() error { return i.ensureNamespace(ctx, r, p, wanted, instance) },
		func() error { return i.checkOthers(ctx, operator, version, instance) })
	if err := cmp.Or(ofNamespace, ofOthers); err != nil {
		return err //nolint:wrapcheck // both say what is wrong
	}
	if err := i.ensureNeeded(ctx, r, needed); err != nil {
		return err
	}
	if err := i.ensurePackage(ctx, r, p, operator, version); err != nil || i.skipInstance {
		return err
	}
	return i.ensureInstance(ctx, r, instance)
}

// checkOthers refuses an OperatorVersion and an Instance that exist and are others. An
// Operator that exists becomes what was read.
func (i *install) checkOthers(ctx context.Context, operator *v1beta1.Operator, version *v1beta1.OperatorVersion, instance *v1beta1.Instance) error {
	if i.dryRun.IsClient() {
		return nil
	}
	_, err := both(
		func() error { i.readOperator(ctx, operator); return nil },
		func() error {
			ofVersion, ofInstance := both(func() error { return i.checkVersion(ctx, version) }, func() error { return i.checkInstance(ctx, instance) })
			return errors.Join(ofVersion, ofInstance)
		})
	return err
}

// readOperator takes over an Operator that exists. If it cannot be read, creating it says why.
func (i *install) readOperator(ctx context.Context, operator *v1beta1.Operator) {
	live := &v1beta1.Operator{}
	if i.client.Get(ctx, client.ObjectKeyFromObject(operator), live) != nil {
		return
	}
	gvk := operator.GroupVersionKind()
	live.DeepCopyInto(operator)
	operator.SetGroupVersionKind(gvk) // decoding removes it
}

func (i *install) ensureInstance(ctx context.Context, r *results, instance *v1beta1.Instance) error {
	did, err := i.ensure(ctx, instance)
	if err != nil {
		return err
	}
	return r.add(instance, did)
}

// ensurePackage creates the Operator and the OperatorVersion. An Operator only describes an
// application, and is shared by all versions of it, so one that exists is kept.
func (o *operation) ensurePackage(ctx context.Context, r *results, p *packages.Package, operator *v1beta1.Operator, version *v1beta1.OperatorVersion) error {
	var did, didVersion string
	err, errVersion := both(
		func() (err error) { did, err = o.ensure(ctx, operator); return err },
		func() (err error) { didVersion, err = o.ensure(ctx, version); return err })
	if err = cmp.Or(err, errVersion); err != nil {
		return err //nolint:wrapcheck // both say what could not be done
	}
	if did == unchanged && !sameText(p.OperatorObject().Spec, operator.Spec) {
		did = kept
	}
	return errors.Join(r.add(operator, did), r.add(version, didVersion))
}

func (o *operation) operatorOf(p *packages.Package) *v1beta1.Operator {
	operator := p.OperatorObject()
	operator.Namespace = o.namespace
	return operator
}

// both runs two requests at the same time, of which none needs the other.
func both(a, b func() error) (errA, errB error) {
	var group sync.WaitGroup
	group.Go(func() { errB = b() })
	errA = a()
	group.Wait()
	return errA, errB
}

// ensure creates an object, and reads it if it exists and was not read.
func (o *operation) ensure(ctx context.Context, obj client.Object) (did string, err error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	defer func() { obj.GetObjectKind().SetGroupVersionKind(gvk) }() // decoding removes it
	if o.dryRun.IsClient() {
		return created, nil
	}
	if obj.GetUID() != "" {
		return unchanged, nil
	}
	options := []client.CreateOption{client.FieldOwner(act.FieldOwner)}
	if o.dryRun.On() {
		options = append(options, client.DryRunAll)
	}
	err = o.client.Create(ctx, obj, options...)
	if apierrors.IsAlreadyExists(err) {
		return unchanged, act.Get(ctx, o.client, obj)
	}
	if err != nil {
		return "", fmt.Errorf("create %s: %w", shortName(obj), err)
	}
	return created, nil
}

// checkVersion refuses an OperatorVersion that exists with other content: Instances may run
// with it. One that exists with this content becomes what was read.
func (o *operation) checkVersion(ctx context.Context, want *v1beta1.OperatorVersion) error {
	live := &v1beta1.OperatorVersion{}
	err := o.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get operatorversion/%s: %w", want.Name, err)
	case !packages.SameContent(&want.Spec, &live.Spec):
		return fmt.Errorf("operatorversion/%s exists in namespace %s with other content; set a new operatorVersion in operator.yaml", want.Name, want.Namespace)
	default:
		gvk := want.GroupVersionKind()
		live.DeepCopyInto(want)
		want.SetGroupVersionKind(gvk) // decoding removes it
		return nil
	}
}

func (i *install) checkInstance(ctx context.Context, want *v1beta1.Instance) error {
	if i.skipInstance {
		return nil
	}
	live := &v1beta1.Instance{}
	err := i.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	named := "instance/" + want.Name
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get %s: %w", named, err)
	case live.DeletionTimestamp != nil:
		return fmt.Errorf("%s in namespace %s is being deleted; wait until it is gone, or choose another name", named, want.Namespace)
	case choice.VersionKey(want.Namespace, &live.Spec) != choice.VersionKey(want.Namespace, &want.Spec):
		return fmt.Errorf("%s exists in namespace %s with OperatorVersion %s; upgrade it with: %s, or choose another name",
			named, want.Namespace, live.Spec.OperatorVersion.Name, i.next("package", "upgrade", named, "PACKAGE"))
	case !choice.SameTarget(want.Namespace, &live.Spec, &want.Spec):
		return fmt.Errorf("%s exists in namespace %s with other parameters; change them with: %s, or choose another name",
			named, want.Namespace, i.next("package", "update", named, "-p", "NAME=VALUE"))
	case want.Spec.ServiceAccountName != "" && want.Spec.ServiceAccountName != live.Spec.ServiceAccountName:
		return fmt.Errorf("%s exists in namespace %s with another ServiceAccount; change spec.serviceAccountName, or choose another name", named, want.Namespace)
	default:
		return nil
	}
}

func (i *install) ensureNamespace(ctx context.Context, r *results, p *packages.Package, version *v1beta1.OperatorVersion, instance *v1beta1.Instance) error {
	if i.dryRun.IsClient() && !i.createNamespace {
		return nil
	}
	if !i.dryRun.IsClient() {
		missing := command.NamespaceMissing(ctx, i.client, i.namespace)
		switch {
		case missing == nil:
			return nil
		case !i.createNamespace:
			return fmt.Errorf("%w, or add --create-namespace", missing)
		case i.dryRun.On():
			return fmt.Errorf("namespace %s does not exist, so the API server cannot check what would be in it; create it, or use --dry-run=client", i.namespace)
		}
	}
	namespace, err := namespaceOf(p, version, instance)
	if err != nil {
		return err
	}
	did, err := i.ensure(ctx, namespace)
	if err != nil {
		return err
	}
	return r.add(namespace, did)
}

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

// load reads a package, and those that it needs, whose versions are pinned in it.
func (o *operation) load(ctx context.Context, name string) (*packages.Package, []*packages.Package, error) {
	p, err := o.from.Load(ctx, o.env, name)
	if err != nil {
		return nil, nil, err
	}
	if err := o.pinAsInstalled(ctx, p); err != nil {
		return nil, nil, err
	}
	needed, err := dependency.Resolve(ctx, p, o.loadNeeded)
	return p, needed, err
}

// pinAsInstalled gives tasks that name no version the one that they got when the package
// was installed: a later one in the repository does not make it another package.
func (o *operation) pinAsInstalled(ctx context.Context, p *packages.Package) error {
	isUnpinned := func(t v1beta1.Task) bool { return t.Kind == v1beta1.KudoOperatorTask && t.Spec.OperatorVersion == "" }
	if o.dryRun.IsClient() || o.client == nil || !slices.ContainsFunc(p.Operator.Tasks, isUnpinned) {
		return nil
	}
	live := &v1beta1.OperatorVersion{}
	err := o.client.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: p.VersionName()}, live)
	if err != nil {
		return client.IgnoreNotFound(err) //nolint:wrapcheck // it names the object
	}
	for i := range p.Operator.Tasks {
		t := &p.Operator.Tasks[i]
		at := slices.IndexFunc(live.Spec.Tasks, func(o v1beta1.Task) bool {
			return o.Name == t.Name && o.Kind == t.Kind && o.Spec.Package == t.Spec.Package
		})
		if isUnpinned(*t) && at >= 0 {
			t.Spec.AppVersion, t.Spec.OperatorVersion = live.Spec.Tasks[at].Spec.AppVersion, live.Spec.Tasks[at].Spec.OperatorVersion
		}
	}
	return nil
}

// loadNeeded reads a package that another needs. One that cannot be read may be installed.
func (o *operation) loadNeeded(ctx context.Context, r dependency.Reference) (*packages.Package, error) {
	from := o.from.Origin(o.env)
	from.AppVersion, from.OperatorVersion = r.AppVersion, r.OperatorVersion
	p, err := from.Load(ctx, r.Package)
	if err == nil || o.dryRun.IsClient() {
		return p, err
	}
	key := client.ObjectKey{Namespace: o.namespace, Name: r.VersionName()}
	if len(validation.NameIsDNSSubdomain(key.Name, false)) > 0 {
		return nil, err // it is named by a path or a URL, as no object is
	}
	switch failed := o.client.Get(ctx, key, &v1beta1.OperatorVersion{}); {
	case failed == nil:
		return nil, nil //nolint:nilnil // it is installed
	case apierrors.IsNotFound(failed):
		return nil, fmt.Errorf("%w; or install it first, so that operatorversion/%s exists in namespace %s", err, key.Name, key.Namespace)
	default:
		return nil, errors.Join(err, failed)
	}
}

// ensureNeeded creates the Operators and OperatorVersions that a package needs, after it
// has seen that none exists with other content.
func (o *operation) ensureNeeded(ctx context.Context, r *results, needed []*packages.Package) error {
	versions := make([]*v1beta1.OperatorVersion, len(needed))
	for i, p := range needed {
		var err error
		if versions[i], err = p.VersionObject(); err != nil {
			return err
		}
		versions[i].Namespace = o.namespace
		if o.dryRun.IsClient() {
			continue
		}
		if err := o.checkVersion(ctx, versions[i]); err != nil {
			return err
		}
	}
	for i, p := range needed {
		if err := o.ensurePackage(ctx, r, p, o.operatorOf(p), versions[i]); err != nil {
			return err
		}
	}
	return nil
}

// namespaceOf is the namespace that a package wants: what its template namespaceManifest
// makes, or one without labels. The name is the one that the user gives.
func namespaceOf(p *packages.Package, version *v1beta1.OperatorVersion, i *v1beta1.Instance) (client.Object, error) {
	manifest := p.Operator.NamespaceManifest
	if manifest == "" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace}}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		return namespace, nil
	}
	text, ok := p.Templates[manifest]
	if !ok {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s not found; fix the name, or add the template", manifest)
	}
	values, _ := choice.Values(&version.Spec, choice.WithTokens(&i.Spec), nil) // which were checked before
	objects, err := render.Objects(manifest, text, render.Context{
		Name: i.Name, Namespace: i.Namespace, OperatorName: p.Operator.Name,
		OperatorVersion: version.Spec.Version, AppVersion: version.Spec.AppVersion, Params: values,
	}, i.Namespace)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || object.RefOf(objects[0]).GroupKind() != object.NamespaceKind {
		return nil, fmt.Errorf("operator.yaml: namespaceManifest: template %s must be one Namespace", manifest)
	}
	objects[0].SetName(i.Namespace)
	return objects[0], nil
}

func sameText(a, b any) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	other, err := json.Marshal(b)
	return err == nil && string(one) == string(other)
}
