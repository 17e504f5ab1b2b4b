package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	semver "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// oldestServer is the first version with all that the rings build on: Pod
// scheduling gates and ValidatingAdmissionPolicy are generally available in it.
const oldestServer = "1.30.0"

func (c *checking) checkServer() ([]finding, error) {
	version, err := c.cluster.ServerVersion()
	if err != nil {
		return nil, err
	}
	f := finding{Group: groupCluster, What: "Kubernetes " + version}
	v, err := semver.ParseGeneric(version)
	if f.OK = err == nil && v.AtLeast(semver.MustParseGeneric(oldestServer)); !f.OK {
		f.Action = "Spillway needs " + oldestServer + " or later"
	}
	return []finding{f}, nil
}

// checkRequirements checks what must hold before a manager is installed.
func (c *checking) checkRequirements(ctx context.Context, reader client.Client) ([]finding, error) {
	var findings []finding
	if !c.pre {
		findings = append(findings, finding{Group: groupCluster, Advice: true, What: "no manager is installed", Action: "spillway install installs it; what follows are its requirements"})
	}
	if slices.Contains(c.rings, manager.RingConfig) {
		findings = append(findings, checkServesPins(reader, pin.ByPolicy))
	}
	findings = append(findings, checkFlux(reader, c.rings)...)
	if slices.Contains(c.rings, manager.RingPlans) && kudoIsInstalled(ctx, reader) {
		findings = append(findings, finding{Group: groupCluster, What: kudoRuns, Action: kudoAction})
	}
	for _, name := range c.rings {
		more, err := checkRing(ctx, reader, name, c.namespaces, askOfUser)
		if err != nil {
			return nil, err
		}
		findings = append(findings, more...)
	}
	return findings, nil
}

// ask asks the API server whether something is permitted.
type ask func(ctx context.Context, c client.Client, attributes *authorizationv1.ResourceAttributes) (bool, error)

// askOfUser asks about the credentials in use.
func askOfUser(ctx context.Context, c client.Client, attributes *authorizationv1.ResourceAttributes) (bool, error) {
	ok, err := act.May(ctx, c, attributes)
	if err != nil {
		return false, fmt.Errorf("ask what is permitted: %w", err)
	}
	return ok, nil
}

// checkRing asks for every verb of every rule of a ring, where it is to hold. What is
// missing is named; all that is permitted is one line.
func checkRing(ctx context.Context, c client.Client, name string, namespaces []string, permitted ask) ([]finding, error) {
	rules, err := manifests.Rules([]string{name}, namespaces...)
	if err != nil {
		return nil, fmt.Errorf("permissions: %w", err)
	}
	where := "in all namespaces"
	if len(namespaces) > 0 {
		where = "in namespace " + strings.Join(namespaces, ", ")
	}
	var denied []finding
	for _, namespace := range kube.OrAll(namespaces) {
		for i := range rules {
			more, err := checkRule(ctx, c, namespace, &rules[i], permitted)
			if err != nil {
				return nil, err
			}
			for j := range more {
				more[j].Group = ring(name)
			}
			denied = append(denied, more...)
		}
	}
	if len(denied) > 0 {
		return denied, nil
	}
	return []finding{{Group: ring(name), OK: true, What: fmt.Sprintf("all %d permissions %s", len(rules), where)}}, nil
}

// checkRule is what of a rule is not permitted.
func checkRule(ctx context.Context, c client.Client, namespace string, rule *rbacv1.PolicyRule, permitted ask) ([]finding, error) {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	var findings []finding
	for _, resource := range rule.Resources {
		var denied []string
		for _, verb := range rule.Verbs {
			allowed, err := permits(ctx, c, &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: rule.APIGroups[0], Resource: resource}, rule.ResourceNames, permitted)
			if err != nil {
				return nil, err
			}
			if !allowed {
				denied = append(denied, verb)
			}
		}
		if len(denied) > 0 {
			of := strings.Join(append([]string{resource}, rule.ResourceNames...), " ")
			findings = append(findings, finding{
				What:    fmt.Sprintf("%s %s %s is not permitted", strings.Join(denied, ", "), of, where),
				Action:  "grant it, for example by spillway install",
				problem: "not permitted",
			})
		}
	}
	return findings, nil
}

// permits is true if something is permitted: of each name, where a rule is about some alone.
func permits(ctx context.Context, c client.Client, attributes *authorizationv1.ResourceAttributes, names []string, permitted ask) (bool, error) {
	for _, name := range names {
		attributes.Name = name
		if allowed, err := permitted(ctx, c, attributes); err != nil || !allowed {
			return false, err
		}
	}
	if len(names) > 0 {
		return true, nil
	}
	return permitted(ctx, c, attributes)
}

// checkFlux looks for the kinds of Flux, which applies what clusters are assigned. On a hub
// only BootstrapModules need it.
func checkFlux(c client.Client, rings []string) []finding {
	onHub := slices.Contains(rings, manager.RingFleet)
	if !onHub && !slices.Contains(rings, manager.RingAssemblage) {
		return nil
	}
	kind := decision.KindOfFlux
	f := finding{Group: groupCluster, OK: true, What: fmt.Sprintf("Flux: %s %s", kind.Kind, kind.GroupVersion())}
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

const (
	kudoRuns   = "KUDO runs the plans of Instances, or its webhook still denies every change of them"
	kudoAction = "stop it and delete mutatingwebhookconfiguration/" + vocabulary.KUDOWebhook + ", or leave plans out of --rings"
)

// WithoutKUDO is an error if two managers would run the plans of Instances.
func WithoutKUDO(ctx context.Context, reader client.Reader, rings []string) error {
	if slices.Contains(rings, manager.RingPlans) && kudoIsInstalled(ctx, reader) {
		return errors.New("nothing was installed: " + kudoRuns + "; " + kudoAction)
	}
	return nil
}

// kudoIsInstalled is true if its webhook is, as far as that may be seen.
func kudoIsInstalled(ctx context.Context, reader client.Reader) bool {
	webhook := kube.Metadata(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"})
	return reader.Get(ctx, client.ObjectKey{Name: vocabulary.KUDOWebhook}, webhook) == nil
}

// checkServesPins says what points Pods at the config of their revision. A cluster where nothing
// does works all the same: no workload keeps the config of its revisions.
func checkServesPins(c client.Client, by pin.By) finding {
	f := finding{Group: groupCluster, What: "pins (revisions that keep their config)"}
	refused, err := snapshots.Refusal(c.RESTMapper(), by)
	switch {
	case err != nil:
		return unread(f.What, err)
	case refused != "":
		f.Advice, f.Action = true, refused
		f.What += " are not possible"
	case by == pin.ByWebhook:
		f.OK, f.What = true, f.What+": the manager's webhook applies them"
	default:
		f.OK, f.What = true, f.What+": MutatingAdmissionPolicies are served"
	}
	return f
}

// checkPins checks the permissions of the manager in the namespaces with pins.
func (i *installation) checkPins(ctx context.Context, c client.Client, permitted ask) []finding {
	pins := i.args.PinNamespaces()
	if pins.IsEmpty() {
		return nil
	}
	f := checkServesPins(c, i.args.PinBy())
	f.Advice = false // it was asked for
	findings := []finding{f}
	rules, err := manifests.PinRules(pins)
	if err != nil {
		return append(findings, unread("permissions for pins", err))
	}
	denied, namespaces, where := 0, pins.Names, "in namespace "+strings.Join(pins.Names, ", ")
	if pins.ReachAll() {
		namespaces, where = []string{""}, "in all namespaces"
	}
	for _, namespace := range namespaces {
		for n := range rules {
			more, err := checkRule(ctx, c, namespace, &rules[n], permitted)
			if err != nil {
				return append(findings, unread("what the manager may do for pins", err))
			}
			denied += len(more)
			findings = append(findings, more...)
		}
	}
	if denied == 0 {
		findings = append(findings, finding{OK: true, What: fmt.Sprintf("all %d permissions for pins %s", len(rules), where)})
	}
	for n := range findings {
		findings[n].Group = ring(manager.RingConfig)
	}
	return findings
}

// askOfManager asks about the ServiceAccount of the manager.
func (i *installation) askOfManager(user string) ask {
	return func(ctx context.Context, c client.Client, attributes *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: attributes, User: user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + i.deployment.Namespace, "system:authenticated"},
		}}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("ask what the manager may do: %w", err)
		}
		return review.Status.Allowed, nil
	}
}
