package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/cli/check"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/dashboard"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type installing struct {
	env     command.Environment
	cluster command.Cluster
	dryRun  command.DryRun
	options manifests.Options
	// pinSelector, pinBy and source are as the flags have them, values is a file with options.
	pinSelector, pinBy, source, values, output string
	export, noKinds, onlyKinds                 bool
}

// NewInstall returns the command install.
func NewInstall(env command.Environment) *cobra.Command {
	i := installing{env: env, options: manifests.Default()}
	o := &i.options
	v := &o.Values
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade Spillway, or print its manifests",
		Example: "  spillway install --export | kubectl diff -f -\n" +
			"  spillway install --watch-namespaces=shop,payments -- --max-rolling=5",
		Long: "Apply the namespace, the permissions and the Deployment of the manager.\n" +
			"Objects that exist are updated. Arguments after -- are passed to the manager.",
		RunE: i.run,
	}
	flags := cmd.Flags()
	i.cluster.AddFlags(flags)
	command.NameFlag(cmd, &i.output)
	i.dryRun.AddFlag(flags)
	flags.BoolVar(&i.export, "export", false, "print the manifests and change nothing")
	flags.StringVarP(&o.Namespace, "namespace", "n", manifests.DefaultNamespace, "namespace to run in")
	flags.StringVar(&o.Image, "image", command.CurrentImage(), "image of the manager; a release installs its own, by its digest")
	flags.StringVar((*string)(&v.Image.PullPolicy), "image-pull-policy", "", "when to pull the image: Always, IfNotPresent or Never (default: as Kubernetes decides)")
	flags.StringSliceVar(&v.WatchNamespaces, "watch-namespaces", nil, "namespaces to watch, with Roles in them and no ClusterRole but for the CA of our own webhooks (default: all)")
	command.RingsFlag(flags, &v.Rings)
	flags.StringSliceVar(&v.PinNamespaces, "pin-namespaces", nil, "namespaces whose workloads may keep the config of each revision: the manager may create and delete ConfigMaps and Secrets there; * for all that it watches")
	flags.StringVar(&i.pinSelector, "pin-namespace-selector", "", "labels of the namespaces whose workloads may do so, such as team=shop, instead of --pin-namespaces: the manager may create and delete ConfigMaps and Secrets in all namespaces")
	command.PinByFlag(flags, &i.pinBy)
	reloaderFlags(flags, &v.Reloader)
	flags.BoolVar(&v.Webhooks.Enabled, "webhooks", v.Webhooks.Enabled, "serve the webhooks of the rings")
	flags.StringVar(&i.source, "webhook-cert-source", string(v.Webhooks.CertificateSource), "where their certificate comes from: generated, cert-manager, or files, for a Secret "+admission.SecretName+" that another manager fills")
	flags.StringSliceVar(&v.Webhooks.Hosts, "webhook-host", nil, "further names by which API servers call, such as rollout-operator.NAMESPACE.svc")
	flags.StringSliceVar(&v.Webhooks.Configurations, "webhook-configurations", nil, "webhook configurations that the manager may inject its CA into, besides its own; \"*\" for all that are labeled")
	flags.BoolVar(&v.RestrictManager, "restrict-manager", v.RestrictManager, "install policies by which the manager's identity may delete only Pods, and change only fields, that the rings need")
	flags.BoolVar(&v.Metrics.Secure, "metrics-secure", v.Metrics.Secure, "serve metrics by HTTPS, to clients that may get /metrics; without a ClusterRole, with --watch-namespaces, they are served by HTTP")
	flags.BoolVar(&v.DefaultPolicy, "default-config-policy", v.DefaultPolicy, "create a ClusterConfigPolicy, once, by which of the workloads that use a ConfigMap or Secret one is rolled first for a change of it; not with --watch-namespaces")
	flags.StringVar(&i.values, "values", "", "file with the options, instead of flags: also replicas, resources, affinity and more of the manager's Pods; \"-\" reads them from standard input")
	flags.BoolVar(&i.noKinds, "no-crds", false, "leave the CustomResourceDefinitions out, for where another installation applies them")
	flags.BoolVar(&i.onlyKinds, "crds-only", false, "install the CustomResourceDefinitions of the rings, and nothing else")
	failClosedFlag(flags, &v.Webhooks.FailClosed)
	flags.BoolVar(&v.PackageKinds, "package-kinds", false, "let the plans ring apply the kinds of Kubernetes that most packages consist of, Secrets and workloads among them (default: if --rings names it); further ones are granted by ClusterRoles with the label "+vocabulary.PackagePermissions+"=true")
	flags.StringSliceVar(&v.PlanAccounts, "plan-accounts", nil, "names of the ServiceAccounts as which plans may act by spec.serviceAccountName of an Instance, in all watched namespaces; \"*\" for all accounts of these (default: those that a namespace lends by a Role)")
	flags.StringVar(&v.DefaultAccount, "default-service-account", "", "name of the ServiceAccount as which plans act whose Instance names none, in its namespace (default: the manager itself)")
	flags.BoolVar(&v.Dashboard.Enabled, "dashboard", false, "install the dashboard in the cluster, read-only, for people who log in there")
	flags.StringVar(&v.Dashboard.Namespace, "dashboard-namespace", "", "namespace of the dashboard and its Secrets (default: that of the manager with -dashboard, or where it is already)")
	flags.BoolVar(&v.Dashboard.Steering, "dashboard-steering", false, "let people act on its pages, each with their own permissions")
	flags.StringSliceVar(&v.Dashboard.Groups, "dashboard-groups", nil, "groups, with their prefix, that its account may impersonate; \"*\" for all (default: none)")
	flags.StringArrayVar(&v.Dashboard.Args, "dashboard-arg", nil, "flag of \"spillway dashboard serve\" with its value, such as the address; repeat it for several")
	flags.BoolVar(&v.WaveCleanup, "wave-cleanup", false, "also allow to patch ConfigMaps and Secrets, to remove the owner references of wave before 2024")
	return cmd
}

func reloaderFlags(flags *pflag.FlagSet, of *manifests.Reloader) {
	flags.BoolVar(&of.Annotations, command.ReloaderAnnotations, false, "roll workloads also by the annotations of Reloader: the manager may restart Rollouts of Argo")
	flags.BoolVar(&of.CronJobs, command.ReloaderCronJobs, false, "start a run of CronJobs whose config changes, where these annotations on them ask for it: the manager may create Jobs, and change CronJobs")
	flags.BoolVar(&of.Metrics, command.ReloaderMetrics, false, "count and report rolls by these annotations by the names of Reloader's metrics and Events, too")
}

// run applies or prints what the flags ask for.
func (i *installing) run(cmd *cobra.Command, args []string) error {
	if err := i.complete(cmd, args); err != nil {
		return err
	}
	if i.export {
		return i.print(cmd.OutOrStdout())
	}
	writer, err := i.cluster.Client()
	if err != nil {
		return err
	}
	if err := i.keepDashboard(cmd.Context(), cmd.ErrOrStderr(), writer); err != nil {
		return err
	}
	objects, err := manifests.Objects(i.options)
	if err != nil {
		return err
	}
	if err := check.WithoutKUDO(cmd.Context(), writer, i.options.Values.Rings); err != nil {
		return err
	}
	if !cmd.Flags().Changed("image") && !command.IsRelease() && !i.onlyKinds {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "image %s is not published, because this program is not a release; name another with --image\n", i.options.Image)
	}
	if err := errors.Join(servesPins(writer, &i.options.Values), keepsName(cmd.Context(), writer, &i.options)); err != nil {
		return err
	}
	return i.write(cmd.Context(), cmd.OutOrStdout(), i.dryRun.Client(writer), objects)
}

func (i *installing) print(w io.Writer) error {
	objects, err := manifests.Objects(i.options)
	if err != nil {
		return err
	}
	if i.output != "" {
		writeNames(w, objects)
		return nil
	}
	return exportObjects(w, objects)
}

// keepDashboard leaves a dashboard that is in the namespace of the manager, from before it had one
// of its own, where its Secrets are, unless the user names another.
func (i *installing) keepDashboard(ctx context.Context, w io.Writer, c client.Client) error {
	d, namespace := &i.options.Values.Dashboard, i.options.Namespace
	if !d.Enabled || d.Namespace != "" {
		return nil
	}
	found := kube.Metadata(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: i.options.Values.DashboardName()}, found)
	if err == nil {
		d.Namespace = namespace
		_, _ = fmt.Fprintf(w, "the dashboard stays in namespace %[1]s, with the manager; to give it one of its own, copy its Secrets there and use --dashboard-namespace=%[1]s-dashboard\n", namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for the dashboard: %w", err)
	}
	return nil
}

// keepsName is an error if the manager of the namespace is installed by another name: it would stay
// beside the one that is installed.
func keepsName(ctx context.Context, c client.Client, o *manifests.Options) error {
	found := kube.MetadataList(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	labels := manifests.ManagerLabels()
	maps.Copy(labels, manifests.SelectInstalled(o.Namespace))
	err := c.List(ctx, found, client.InNamespace(o.Namespace), client.MatchingLabels(labels))
	if err != nil && !apierrors.IsForbidden(err) { // what follows says which permissions are needed
		return fmt.Errorf("look for the manager: %w", err)
	}
	for i := range found.Items {
		if name := found.Items[i].Name; !o.OnlyKinds && name != o.Values.Name() {
			return fmt.Errorf("deployment/%s in namespace %s is the manager: install by that name (fullnameOverride), or first remove it: spillway uninstall -n %s", name, o.Namespace, o.Namespace)
		}
	}
	return nil
}

// write applies the objects and removes those that are not installed any more; it says of each
// what was done, or only names what is installed.
func (i *installing) write(ctx context.Context, w io.Writer, c client.Client, objects []*unstructured.Unstructured) error {
	told := w
	if i.output != "" {
		told = io.Discard
	}
	if err := i.apply(ctx, told, c, objects); err != nil {
		return err
	}
	if !i.options.OnlyKinds {
		if err := prune(ctx, told, c, &i.options, objects, i.dryRun.Note()); err != nil {
			return err
		}
	}
	if i.output != "" {
		writeNames(w, objects)
	}
	return nil
}

// complete makes the options of the flags, the file of --values and the arguments.
func (i *installing) complete(cmd *cobra.Command, args []string) error {
	o, flags := &i.options, cmd.Flags()
	v := &o.Values
	v.Args, o.Version, v.Webhooks.CertificateSource, v.CRDs = args, command.CurrentVersion(), admission.Source(i.source), !i.noKinds
	if err := errors.Join(manager.CheckRings(v.Rings), command.CheckNamespaces("namespace", o.Namespace), command.CheckNamespaces("watch-namespaces", v.WatchNamespaces...), i.check(cmd, args)); err != nil {
		return err
	}
	v.PinBy = pin.By(i.pinBy)
	var err error
	if v.PinSelector, err = selectorOf(i.pinSelector); err != nil {
		return err
	}
	if !flags.Changed("package-kinds") {
		v.PackageKinds = flags.Changed("rings")
	}
	if i.values != "" {
		if err := readValues(cmd, i.values, o); err != nil {
			return err
		}
	}
	if o.OnlyKinds = i.onlyKinds; o.OnlyKinds && !v.CRDs {
		return errors.New("--crds-only: the CustomResourceDefinitions are left out by --no-crds or by crds in the file of --values; leave out one of them")
	}
	if !flags.Changed("image") { // another image may have other flags
		if err := checkArguments(i.env, v.Args); err != nil {
			return err
		}
		if err := checkDashboard(i.env, &v.Dashboard); err != nil {
			return err
		}
	}
	if err := o.Validate(); err != nil {
		return err
	}
	var own manifests.Arguments
	own, err = manifests.OwnArguments(*o)
	if err != nil {
		return err
	}
	return checkContradiction(i.env, own, v.Args)
}

// selectorOf is a selector of labels as the values have it, nil if there is none.
func selectorOf(text string) (*metav1.LabelSelector, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no selector is one
	}
	n, err := pin.Flags{Selector: text}.Namespaces()
	if err != nil {
		return nil, err
	}
	return n.LabelSelector(), nil
}

// checkContradiction refuses arguments of the manager that say something else than those that
// the installation gives it: permissions, kinds and webhooks follow from these.
func checkContradiction(env command.Environment, own, args []string) error {
	mine, given := NewManager(env).Flags(), NewManager(env).Flags()
	err := errors.Join(mine.Parse(own), given.Parse(args))
	if err != nil {
		return nil //nolint:nilerr // another image may have other flags
	}
	given.Visit(func(f *pflag.Flag) {
		set := mine.Lookup(f.Name)
		if err == nil && set.Changed && set.Value.String() != f.Value.String() {
			text := func(f *pflag.Flag) string { return "--" + f.Name + "=" + strings.Trim(f.Value.String(), "[]") }
			err = fmt.Errorf("after --: %s contradicts %s, which spillway install sets: leave it out, and set it by a flag of spillway install (see spillway install --help)", text(f), text(set))
		}
	})
	return err
}

func (i *installing) check(cmd *cobra.Command, args []string) error {
	if name := i.options.Values.Dashboard.Namespace; name != "" {
		if err := command.CheckNamespaces("dashboard-namespace", name); err != nil {
			return err
		}
	}
	if err := command.AfterDash("give the flags of the manager after --, as in: "+cmd.CommandPath()+" -- --max-rolling=5")(cmd, args); err != nil {
		return err
	}
	switch {
	case len(i.options.Values.WatchNamespaces) == 0 && cmd.Flags().Changed("watch-namespaces"):
		return errors.New("--watch-namespaces: name at least one namespace, or leave it out to watch all")
	case i.options.Image == "" || strings.ContainsAny(i.options.Image, " \t\n"):
		return fmt.Errorf("--image: %q is not the name of an image; write it as registry.example.com/spillway:v0.1.0", i.options.Image)
	case !slices.Contains([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}, i.options.Values.Image.PullPolicy):
		return fmt.Errorf("--image-pull-policy: %q is not known; use Always, IfNotPresent or Never", i.options.Values.Image.PullPolicy)
	default:
		return nil
	}
}

func checkArguments(env command.Environment, args []string) error {
	m, root := NewManager(env), &cobra.Command{Use: "spillway"}
	root.AddCommand(m) // its name is in the message
	if err := m.Flags().Parse(args); err != nil {
		return fmt.Errorf("after --: %w", command.FlagError(m, err))
	}
	if m.Flags().NArg() > 0 {
		return fmt.Errorf("after --: %q is not a flag of the manager; write flags as --name=value", m.Flags().Arg(0))
	}
	return nil
}

func checkDashboard(env command.Environment, d *manifests.Dashboard) error {
	if !d.Enabled {
		return nil
	}
	if err := dashboard.CheckArguments(env, d.Args); err != nil {
		return fmt.Errorf("arguments of the dashboard (--dashboard-arg, or dashboard.args of --values): %w", err)
	}
	return nil
}

// servesPins is an error where the API server cannot apply pins.
func servesPins(c client.Client, v *manifests.Values) error {
	if pins, err := v.Pins(); err != nil || pins.IsEmpty() {
		return err
	}
	refused, err := snapshots.Refusal(c.RESTMapper(), v.PinBy)
	if refused != "" {
		err = errors.New("--pin-namespaces: " + refused)
	}
	return err
}

// readValues takes the options from a file. Flags that say the same cannot be used with it,
// so that it is never in doubt which wins; the namespace and the image can.
func readValues(cmd *cobra.Command, file string, o *manifests.Options) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(inValues, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) > 0 {
		return fmt.Errorf("--values: %s cannot be used with it; write it into the file", strings.Join(others, ", "))
	}
	var (
		raw []byte
		err error
	)
	if file == "-" {
		raw, err = io.ReadAll(cmd.InOrStdin())
	} else {
		raw, err = os.ReadFile(file) //nolint:gosec // the user names it
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--values: %s not found; name a file that exists, or - for standard input", file)
	}
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("--values: %s cannot be read: %w; name a file, or - for standard input", file, named.Err)
	}
	if err != nil {
		return fmt.Errorf("--values: %w", err)
	}
	v, err := manifests.ParseValues(raw)
	if err != nil {
		return fmt.Errorf("--values: %s: %s", file, plainYAML(err))
	}
	if !cmd.Flags().Changed("image") {
		o.Image = v.ImageOr(o.Image)
	}
	v.Args = append(v.Args, o.Values.Args...)
	o.Values = v
	return nil
}

// The ways in which the decoder names a field that does not exist, and a value of another kind
// than that of its field, which is no field for the whole file.
var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	otherKind    = regexp.MustCompile(`cannot unmarshal (\w+) into Go (?:struct field \w+\.(\S+)|value) of type (\S+)`)
)

// plainYAML is what is wrong with a file, without the names of the decoder's parts.
func plainYAML(err error) string {
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("there is no field %q; docs/values.md lists the fields", m[1])
	}
	if m := otherKind.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("%s has a value of the wrong kind, %s; docs/values.md lists the fields", cmp.Or(m[2], "the file"), m[1])
	}
	text := err.Error()
	for _, part := range []string{"values: ", "error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "json: "} {
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

var inValues = []string{
	"image-pull-policy", "watch-namespaces", "pin-namespaces", "pin-namespace-selector", "pin-by", "reloader-annotations", "reloader-cronjobs", "reloader-metrics", "rings", "webhooks", "webhook-cert-source", "webhook-host", "webhook-configurations", "restrict-manager",
	"default-config-policy", "metrics-secure", "fail-closed", "package-kinds", "plan-accounts", "default-service-account", "wave-cleanup", "no-crds", "dashboard", "dashboard-namespace", "dashboard-steering", "dashboard-groups", "dashboard-arg",
}

func exportObjects(w io.Writer, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		raw, err := yaml.Marshal(obj.Object)
		if err != nil {
			return fmt.Errorf("print %s: %w", obj.GetName(), err)
		}
		_, _ = fmt.Fprintf(w, "---\n%s", raw)
	}
	return nil
}

func (i *installing) apply(ctx context.Context, w io.Writer, c client.Client, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		verdict, err := applyObject(ctx, c, obj)
		switch {
		case i.dryRun.On() && isNamespaceMissing(err, obj):
			verdict = "created" // it is, once its namespace is; the API server cannot check it before
		case err != nil:
			return err
		case i.dryRun.IsClient() && verdict != "created":
			verdict = "applied" // only the API server knows whether that changes it
		}
		_, _ = fmt.Fprintf(w, "%s %s%s\n", named(obj), verdict, i.dryRun.Note())
	}
	return nil
}

func isNamespaceMissing(err error, obj *unstructured.Unstructured) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && obj.GetNamespace() != "" && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

func named(obj *unstructured.Unstructured) string {
	return strings.ToLower(obj.GetKind()) + "/" + obj.GetName()
}

func writeNames(w io.Writer, objects []*unstructured.Unstructured) {
	for _, obj := range objects {
		_, _ = fmt.Fprintln(w, named(obj))
	}
}

func applyObject(ctx context.Context, c client.Client, obj *unstructured.Unstructured) (string, error) {
	what := named(obj)
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(obj.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), before)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	after := obj.DeepCopy()
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), client.FieldOwner(kube.FieldOwner), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("apply %s: %w", what, err)
	}
	switch {
	case before.GetResourceVersion() == "":
		return "created", nil
	case equality.Semantic.DeepEqual(wanted(before), wanted(after)):
		return "unchanged", nil
	default:
		return "configured", nil
	}
}

// wanted is what a user asks for of an object: without what API servers and
// controllers write on it all the time.
func wanted(obj *unstructured.Unstructured) map[string]any {
	content := obj.DeepCopy().Object
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	return content
}
