package check

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

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
