package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// oldestServer is the first version with all that the rings build on: Pod
// scheduling gates and ValidatingAdmissionPolicy are generally available in it.
const oldestServer = "1.30.0"

// finding is one line of the check.
type finding struct {
	OK bool `json:"ok"`
	// What was looked at, and how it was found.
	What string `json:"what"`
	// Fix says what to do, empty if nothing.
	Action string `json:"action,omitempty"`
	// Advice is true if Spillway works all the same.
	Advice bool `json:"advice,omitempty"`
}

// NewCheck returns the command check.
func NewCheck(env command.Environment) *cobra.Command {
	var (
		c                 command.Cluster
		rings, namespaces []string
		output            string
	)
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check that this cluster and these permissions meet the requirements",
		Example: "  spillway check --rings=config,zones --namespaces=shop",
		Long: "Check that this cluster and the permissions of the credentials in use meet the\n" +
			"requirements of the manager. The exit code is 1 if they do not.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := check(cmd.Context(), &c, rings, namespaces)
			if err != nil {
				return err
			}
			if err := command.Show(cmd.OutOrStdout(), output, findings, func(w io.Writer) { writeFindings(w, display.StyleOf(w, env.Lookup), findings) }); err != nil {
				return err
			}
			return verdict(findings)
		},
	}
	c.AddFlags(cmd.Flags())
	cmd.Flags().StringSliceVar(&namespaces, "namespaces", nil, "namespaces that the manager is to watch (default: all)")
	command.RingsFlag(cmd.Flags(), &rings)
	command.OutputFlag(cmd, &output)
	return cmd
}

func verdict(findings []finding) error {
	for _, f := range findings {
		if !f.OK && !f.Advice {
			return errors.New("this cluster or these permissions do not meet the requirements; see above")
		}
	}
	return nil
}

func writeFindings(w io.Writer, s display.Style, findings []finding) {
	for _, f := range findings {
		mark, action := s.Paint(display.Green, "✓"), ""
		if !f.OK {
			mark = s.Paint(display.Red, "✗")
			if f.Advice {
				mark = s.Paint(display.Yellow, "!")
			}
		}
		if f.Action != "" {
			action = "; " + f.Action
		}
		_, _ = fmt.Fprintf(w, "%s %s\n", mark, s.Fold(f.What+action, 2))
	}
}

func check(ctx context.Context, c *command.Cluster, rings, namespaces []string) ([]finding, error) {
	reader, err := c.Client()
	if err != nil {
		return nil, err
	}
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	server, err := checkServer(d)
	if err != nil {
		return nil, err
	}
	permissions, err := checkPermissions(ctx, reader, rings, namespaces)
	if err != nil {
		return nil, err
	}
	findings := append([]finding{server}, permissions...)
	if slices.Contains(rings, manager.RingPlans) && kudoIsInstalled(ctx, reader) {
		findings = append(findings, finding{What: kudoRuns, Action: kudoAction})
	}
	findings = append(findings, checkFlux(reader, rings)...)
	return append(findings, checkTraces(ctx, reader)...), nil
}

// checkFlux looks for the kinds of Flux, which applies what clusters are assigned. On a hub
// only BootstrapModules need it.
func checkFlux(c client.Client, rings []string) []finding {
	onHub := slices.Contains(rings, manager.RingFleet)
	if !onHub && !slices.Contains(rings, manager.RingAssemblage) {
		return nil
	}
	kind := decision.KindOfFlux
	f := finding{OK: true, What: fmt.Sprintf("Flux: %s %s", kind.Kind, kind.GroupVersion())}
	if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		return []finding{f}
	}
	f.OK, f.Advice = false, !slices.Contains(rings, manager.RingAssemblage)
	f.What, f.Action = f.What+" not found", "install Flux: the assignments of this cluster are applied with it"
	if f.Advice {
		f.Action = "install Flux if BootstrapModules are used: the hub applies them with it; for Modules each workload cluster needs it"
	}
	return []finding{f}
}

func checkServer(d discovery.ServerVersionInterface) (finding, error) {
	info, err := d.ServerVersion()
	if err != nil {
		return finding{}, fmt.Errorf("ask the API server for its version: %w", err)
	}
	f := finding{What: "Kubernetes " + info.GitVersion}
	v, err := semver.ParseGeneric(info.GitVersion)
	if f.OK = err == nil && v.AtLeast(semver.MustParseGeneric(oldestServer)); !f.OK {
		f.Action = "Spillway needs " + oldestServer + " or later"
	}
	return f, nil
}

// checkPermissions asks for every verb of every rule, where it is to hold.
func checkPermissions(ctx context.Context, c client.Client, rings, namespaces []string) ([]finding, error) {
	rules, err := manifests.Rules(manifests.Options{Rings: rings})
	if err != nil {
		return nil, err
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var findings []finding
	for _, namespace := range namespaces {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				f, err := checkRule(ctx, c, namespace, rule, resource)
				if err != nil {
					return nil, err
				}
				findings = append(findings, f)
			}
		}
	}
	return findings, nil
}

func checkRule(ctx context.Context, c client.Client, namespace string, rule rbacv1.PolicyRule, resource string) (finding, error) {
	var denied []string
	for _, verb := range rule.Verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: rule.APIGroups[0], Resource: resource,
			},
		}}
		if err := c.Create(ctx, review); err != nil {
			return finding{}, fmt.Errorf("ask what is permitted: %w", err)
		}
		if !review.Status.Allowed {
			denied = append(denied, verb)
		}
	}
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	f := finding{OK: len(denied) == 0, What: fmt.Sprintf("%s %s %s", strings.Join(rule.Verbs, ", "), resource, where)}
	if !f.OK {
		f.Action = fmt.Sprintf("grant %s, for example by spillway install", strings.Join(denied, ", "))
	}
	return f, nil
}

// checkTraces looks for workloads that are suspended, and for what wave
// left on them, as far as it may be seen.
func checkTraces(ctx context.Context, reader client.Reader) []finding {
	traces, err := config.Traces(ctx, reader)
	if err != nil {
		return []finding{{Advice: true, What: "suspended workloads and what wave left on others could not be looked for: " + err.Error()}}
	}
	managers := &appsv1.DeploymentList{}
	unknown := reader.List(ctx, managers, client.MatchingLabels(manifests.ManagerLabels())) != nil
	var findings []finding
	for _, trace := range traces {
		what := fmt.Sprintf("%s/%s in namespace %s ", strings.ToLower(trace.Kind), trace.Name.Name, trace.Namespace)
		if trace.Suspended() {
			findings = append(findings, suspendedFinding(what, trace, unknown || isManaged(managers, trace.Namespace)))
		}
		for _, left := range trace.LeftOut {
			findings = append(findings, finding{Advice: true, What: what + "names config of another namespace that does not count: " + left,
				Action: "share it before changing over from wave, or run the manager with --allow-cross-namespace"})
		}
		if trace.Finalizer {
			findings = append(findings, finding{Advice: true, What: what + "has the finalizer of wave before 2024", Action: disownAction(&trace)})
		}
	}
	return findings
}

// disownAction says what the manager needs to remove wave's finalizer: permissions for the
// objects of this workload alone.
func disownAction(t *config.Trace) string {
	const removes = "the manager removes it"
	if len(t.Owns) == 0 {
		return removes
	}
	words := []string{"kubectl create role spillway-wave-" + strings.ToLower(t.Kind) + "-" + t.Name.Name, "-n", t.Namespace, "--verb=patch --resource=configmaps,secrets"}
	for _, owned := range t.Owns {
		words = append(words, "--resource-name="+owned.Name)
	}
	return removes + " with the owner references on its config, once it may patch that: " + strings.Join(words, " ") +
		", and bind it to the ServiceAccount of the manager; or install with --wave-cleanup"
}

// isManaged is true if one of the managers watches the namespace.
func isManaged(managers *appsv1.DeploymentList, namespace string) bool {
	return slices.ContainsFunc(managers.Items, func(d appsv1.Deployment) bool { return command.Watches(command.ManagerArgs(d), namespace) })
}

// suspendedFinding says who lets a suspended workload run. Without a manager
// no one does: it is blocked.
func suspendedFinding(what string, trace config.Trace, managed bool) finding {
	f := finding{Advice: true, What: what + "is suspended until its config exists", Action: "spillway explain says what is missing"}
	if trace.Suspension.Scheduler {
		f.What, f.Action = what+"was suspended by wave", "the manager releases it once its config exists"
	}
	if !managed {
		f.What += " and blocked, because no manager watches its namespace"
		f.Action = "install the manager, or release the workload with spillway uninstall"
	}
	return f
}
