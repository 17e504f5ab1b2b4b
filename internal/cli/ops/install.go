package ops

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/cli/check"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const repository = "ghcr.io/spillway-dev/spillway"

// NewInstall returns the command install.
func NewInstall(command.Environment) *cobra.Command {
	var (
		c      command.Cluster
		o      manifests.Options
		export bool
	)
	source, webhooks, restrict, secure := string(admission.Generated), true, true, true
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install or upgrade Spillway, or print its manifests",
		Example: "  spillway install --export | kubectl diff -f -\n" +
			"  spillway install --watch-namespaces=shop,payments -- --max-rolling=5",
		Long: "Apply the namespace, the permissions and the Deployment of the manager.\n" +
			"Objects that exist are updated. Arguments after -- are passed to the manager.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args, o.Version, o.Admission.Source, o.Admission.Off = args, command.CurrentVersion(), admission.Source(source), !webhooks
			o.Unrestricted, o.PlainMetrics = !restrict, !secure
			if f := cmd.Flags(); !f.Changed("package-kinds") {
				o.PackageKinds = f.Changed("rings")
			}
			if err := o.Admission.Validate(); err != nil {
				return err
			}
			objects, err := manifestObjects(o)
			if err != nil {
				return err
			}
			if export {
				return exportObjects(cmd.OutOrStdout(), objects)
			}
			writer, err := c.Client()
			if err != nil {
				return err
			}
			if err := check.WithoutKUDO(cmd.Context(), writer, o.Rings); err != nil {
				return err
			}
			if err := applyObjects(cmd.Context(), cmd.OutOrStdout(), writer, objects); err != nil {
				return err
			}
			return prune(cmd.Context(), cmd.OutOrStdout(), writer, o.Namespace, objects)
		},
	}
	flags := cmd.Flags()
	c.AddFlags(flags)
	flags.BoolVar(&export, "export", false, "print the manifests and change nothing")
	flags.StringVarP(&o.Namespace, "namespace", "n", "spillway-system", "namespace to run in")
	flags.StringVar(&o.Image, "image", repository+":"+command.CurrentVersion(), "image of the manager")
	flags.StringSliceVar(&o.Watch, "watch-namespaces", nil, "namespaces to watch, with Roles in them and no ClusterRole but for the CA of our own webhooks (default: all)")
	command.RingsFlag(flags, &o.Rings)
	flags.BoolVar(&webhooks, "webhooks", webhooks, "serve the webhooks of the rings")
	flags.StringVar(&source, "webhook-cert-source", source, "where their certificate comes from: generated, cert-manager, or files, for a Secret "+admission.SecretName+" that another manager fills")
	flags.StringSliceVar(&o.Admission.Hosts, "webhook-host", nil, "further names by which API servers call, such as rollout-operator.NAMESPACE.svc")
	flags.StringSliceVar(&o.Admission.Configurations, "webhook-configurations", nil, "webhook configurations that the manager may inject its CA into, besides its own; \"*\" for all that are labeled")
	flags.BoolVar(&restrict, "restrict-manager", restrict, "install policies by which the manager's identity may delete only Pods, and change only fields, that the rings need")
	flags.BoolVar(&secure, "metrics-secure", secure, "serve metrics by HTTPS, to clients that may get /metrics; without a ClusterRole, with --watch-namespaces, they are served by HTTP")
	failClosedFlag(flags, &o.Admission.FailClosed)
	flags.BoolVar(&o.PackageKinds, "package-kinds", false, "let the plans ring apply the kinds of Kubernetes that most packages consist of, Secrets and workloads among them (default: if --rings names it); further ones are granted by ClusterRoles with the label "+vocabulary.PackagePermissions+"=true")
	flags.BoolVar(&o.WaveCleanup, "wave-cleanup", false, "also allow to patch ConfigMaps and Secrets, to remove the owner references of wave before 2024")
	return cmd
}

// manifestObjects are the objects as an API server wants them applied: without
// status and empty timestamps.
func manifestObjects(o manifests.Options) ([]*unstructured.Unstructured, error) {
	typed, err := manifests.Objects(o)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed))
	for _, obj := range typed {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", obj.GetName(), err)
		}
		unstructured.RemoveNestedField(content, "status")
		if rules, ok := content["rules"]; ok && rules == nil {
			delete(content, "rules") // of a role that is aggregated they are the API server's
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
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

func applyObjects(ctx context.Context, w io.Writer, c client.Client, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		verdict, err := applyObject(ctx, c, obj)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s/%s %s\n", strings.ToLower(obj.GetKind()), obj.GetName(), verdict)
	}
	return nil
}

// applyObject applies an object and says what that did.
func applyObject(ctx context.Context, c client.Client, obj *unstructured.Unstructured) (string, error) {
	what := strings.ToLower(obj.GetKind()) + "/" + obj.GetName()
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
