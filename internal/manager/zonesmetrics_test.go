package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/guard/policies"
)

// The dashboard and the alerts of rollout-operator find what they ask for. The alert about
// failure policies is silent while evictions are refused without a manager, and fires when
// that is so no longer; the one about invalid budgets fires for as long as there is one.
func TestMetricsOfRolloutOperator(t *testing.T) {
	c, ns := newClient(t, testenv.Shared()), testenv.Namespace(t)
	if err := zonesv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	installZones(t, c)
	testenv.InvalidBudget(t, c, ns)
	declared := guard.Declared()
	w := testenv.RegisterWebhooks(t, ns, declared.Webhooks)
	testenv.Guards(t, c, ns, declared.Unanswered)
	o := options(ns)
	o.LeaderElect, o.Rings, o.Zones, o.Admission, o.MetricsAddress = false, []string{manager.RingZones}, zones.Options{Now: time.Now}, w.Options, address(t)
	stop := run(t, testenv.Shared(), o)
	w.WaitServed(t)
	if err := refusedReview("https://" + w.Options.Address + guard.PathPodEviction); err != nil {
		t.Error(err)
	}

	const fails, ignores = `,webhook="pod-eviction.zones.spillway.dev"} 1`, `,webhook="pod-eviction.zones.spillway.dev"} 0`
	url := "http://" + o.MetricsAddress + "/metrics"
	for _, text := range []string{
		`rollout_operator_kubernetes_api_client_request_duration_seconds_count{method="GET",path="apps/v1/statefulsets collection",status_code="200"}`,
		`rollout_operator_request_duration_seconds_count{method="POST",route="admission_pod_eviction",status_code="415",ws="false"}`,
		`rollout_operator_zpdb_inflight_eviction_requests 0`,
		`kube_validating_webhook_failure_policy{policy="Fail",type="MutatingWebhook"` + fails,
		`kube_validating_webhook_failure_policy{policy="Ignore",type="MutatingWebhook"` + ignores,
		`kube_validating_webhook_failure_policy{policy="Ignore",type="ValidatingWebhook",webhook="no-downscale.zones.spillway.dev"} 1`,
		`kube_validating_webhook_failure_policy{policy="Ignore",type="ValidatingWebhook",webhook="zpdb-validation.zones.spillway.dev"} 0`,
	} {
		testenv.Eventually(t, func(context.Context) error { return serves(url, text) })
	}

	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admission.GuardName(ns, policies.PodEviction)}}
	if err := c.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	for _, webhook := range []string{`type="MutatingWebhook",webhook="pod-eviction`, `type="ValidatingWebhook",webhook="zpdb-validation`} {
		text := `kube_validating_webhook_failure_policy{policy="Ignore",` + webhook + `.zones.spillway.dev"} 1`
		testenv.Eventually(t, func(context.Context) error { return serves(url, text) })
	}

	for last, rises := -1, 0; rises < 3; rises++ {
		testenv.Eventually(t, func(context.Context) error {
			now, err := invalidBudgets(url)
			if err != nil || now <= last {
				return fmt.Errorf("%d invalid budgets observed, %d before: %w", now, last, err)
			}
			last = now
			return nil
		})
	}
	installZones(t, c)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// refusedReview asks for what is no review.
func refusedReview(url string) error {
	answer, err := insecure().Post(url, "text/plain", bytes.NewReader([]byte("x")))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusUnsupportedMediaType {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// invalidBudgets is how many were observed, at this scrape.
func invalidBudgets(url string) (n int, err error) {
	res, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	const name = `rollout_operator_zpdb_configurations_observed_total{result="invalid"} `
	_, rest, found := strings.Cut(string(body), name)
	if !found {
		return 0, fmt.Errorf("not found: %s", name)
	}
	_, err = fmt.Sscan(rest, &n)
	return n, err
}

// The manager may read the policies that it asks for, and no others.
func TestOnlyTheGuardsMayBeRead(t *testing.T) {
	o := manifests.Default(manager.RingZones)
	o.Namespace = "spillway"
	objects, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	var installed, read []string
	for _, obj := range testenv.Typed(t, objects) {
		switch obj := obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			installed = append(installed, obj.Name)
		default:
			read = append(read, readable(obj, "validatingadmissionpolicybindings")...)
		}
	}
	if want := admission.GuardName("spillway", "pod-eviction.zones.spillway.dev"); len(read) != 1 || read[0] != want || !strings.Contains(strings.Join(installed, " "), want) {
		t.Errorf("may read %v, want %s of %v", read, want, installed)
	}
}

// readable are the names of objects of a kind that a role lets read.
func readable(obj client.Object, resource string) (names []string) {
	role, ok := obj.(*rbacv1.ClusterRole)
	if !ok {
		return nil
	}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) {
			names = append(names, rule.ResourceNames...)
		}
	}
	return names
}
