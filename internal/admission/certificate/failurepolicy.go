package certificate

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/metrics"
)

// scrapeTimeout is how long a scrape may wait for the API server.
const scrapeTimeout = 2 * time.Second

// failurePolicies exports what becomes of a request that no webhook answers, under the name
// by which rollout-operator's alert asks for it. One that is refused by a policy of the API
// server, though its webhook is ignored, counts as refused while that policy is in force:
// the alert is about what is not guarded. What cannot be read counts as not guarded.
//
// It is read when metrics are, so that it costs nothing where they are not.
type failurePolicies struct {
	// from is what the manager reads with, nil while there is none.
	from atomic.Pointer[guardReader]
}

var unanswered failurePolicies

func init() { metrics.Register(&unanswered) } //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used

// Describe implements [prometheus.Collector].
func (*failurePolicies) Describe(descs chan<- *prometheus.Desc) { descs <- metrics.UnansweredDesc }

// Collect implements [prometheus.Collector].
func (f *failurePolicies) Collect(found chan<- prometheus.Metric) {
	from := f.from.Load()
	if from == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // a scrape has none
	defer cancel()
	for _, w := range from.registered(ctx) {
		for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
			is := 0.0
			if w.policy == policy {
				is = 1
			}
			found <- prometheus.MustNewConstMetric(metrics.UnansweredDesc, prometheus.GaugeValue, is, w.kind, w.name, string(policy))
		}
	}
}

// guardReader reads what guards requests.
type guardReader struct {
	*observer

	live client.Reader
	// guards are the policies that refuse what a webhook has not answered, by its name.
	guards map[string]string
}

func newGuardReader(r *observer, live client.Reader, webhooks []admission.Webhook) *guardReader {
	g := &guardReader{observer: r, live: live, guards: map[string]string{}}
	for _, w := range webhooks {
		if w.GuardedBy != "" {
			g.guards[w.Name] = admission.GuardName(r.options.Namespace, w.GuardedBy)
		}
	}
	return g
}

// unansweredWebhook is a webhook, and what becomes of a request that it does not answer.
type unansweredWebhook struct {
	kind, name string
	policy     admissionregistrationv1.FailurePolicyType
}

// isNamesake is true of a webhook with the same labels.
func (w unansweredWebhook) isNamesake(other unansweredWebhook) bool {
	return other.kind == w.kind && other.name == w.name
}

// registered are the webhooks that this manager serves, each once.
func (g *guardReader) registered(ctx context.Context) []unansweredWebhook {
	found, err := g.readConfigurations(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("failure policies of webhooks are not exported", "reason", err.Error())
		return nil
	}
	inForce := map[string]bool{}
	for _, guard := range g.guards {
		if _, known := inForce[guard]; !known {
			inForce[guard] = g.isInForce(ctx, guard)
		}
	}
	var all []unansweredWebhook
	for i := range found {
		for _, h := range found[i].hooks {
			w := unansweredWebhook{kind: strings.TrimSuffix(found[i].kind, "Configuration"), name: h.name, policy: h.policy}
			if inForce[g.guards[w.name]] {
				w.policy = admissionregistrationv1.Fail
			}
			if !slices.ContainsFunc(all, w.isNamesake) {
				all = append(all, w)
			}
		}
	}
	return all
}

// isInForce is true if a policy and its binding exist, and refuse.
func (g *guardReader) isInForce(ctx context.Context, name string) bool {
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	for _, obj := range []client.Object{policy, binding} {
		if err := g.live.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
			log.FromContext(ctx).V(1).Info("policy cannot be read, so it counts as absent", "name", name, "reason", err.Error())
			return false
		}
	}
	return binding.Spec.PolicyName == name && slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny)
}
