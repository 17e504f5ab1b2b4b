package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
)

// runCommand runs a command, and returns its exit code and all that it wrote.
func runCommand(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	out := &testenv.Buffer{}
	code = cli.Run(t.Context(), command.Environment{
		Args: append([]string{"spillway"}, append(args, "--kubeconfig="+testenv.Shared().Kubeconfig())...),
		Out:  out, Err: out, Now: time.Now, Lookup: func(string) (string, bool) { return "", false },
	})
	return code, out.String()
}

// An installation has the name that its values say: check finds it, a later one by another name would
// leave two managers, and all of it is removed.
func TestAnInstallationByAnotherName(t *testing.T) {
	watched := testenv.Namespace(t)
	system, values := watched+"-system", filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("fullnameOverride: releases\nwatchNamespaces: ["+watched+"]\nimage: {repository: spillway, tag: test}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(code int, text string, args ...string) {
		t.Helper()
		if got, said := runCommand(t, append(args, "-n", system)...); got != code || !strings.Contains(said, text) {
			t.Errorf("%v, with exit code %d, does not say %q:\n%s", args, got, text, said)
		}
	}
	says(0, "deployment/releases created", "install", "--values="+values)
	says(1, "manager "+system+"/releases\n", "check")
	says(0, "no permission of the manager changes", "check", "--upgrade")
	says(1, "deployment/releases in namespace "+system+" is the manager: install by that name (fullnameOverride)", "install", "--watch-namespaces="+watched)
	says(0, "no permission of the manager changes", "check", "--upgrade")
	says(0, "serviceaccount/releases deleted", "uninstall")
}

// What is wrong with an installation is said, one after the other, until nothing is.
func TestAnInstallation(t *testing.T) {
	c := testenv.Client(t)
	watched := testenv.Namespace(t)
	system := watched + "-system"
	says := func(code int, texts ...string) {
		t.Helper()
		testenv.Eventually(t, func(context.Context) error {
			got, said := runCommand(t, "check", "-n", system)
			for _, text := range texts {
				if !strings.Contains(said, text) {
					return fmt.Errorf("it does not say %q:\n%s", text, said)
				}
			}
			if got != code {
				return fmt.Errorf("exit code %d:\n%s", got, said)
			}
			return nil
		})
	}
	if code, said := runCommand(t, "install", "-n", system, "--watch-namespaces="+watched, "--image=spillway:test"); code != 0 {
		t.Fatal(said)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	says(1, "manager "+system+"/spillway\n", "✓ 2 of 2 Pods are ready, image spillway:test", "✓ memory is limited to 256Mi, and the objects here need at most about 128Mi", "✗ no replica leads: Lease spillway-manager not found; kubectl logs",
		"kinds are those of version", "policies, webhooks and bindings", "has no certificate authority",
		"✗ validatingwebhookconfiguration/"+system+".zones.spillway.dev has no key in the path of no-downscale.zones.spillway.dev", "! the webhooks have no certificate yet: none in Secret spillway-webhooks-certificate",
		"ring config\n", "permissions in namespace "+watched, "✓ no rollouts")

	deployment := &appsv1.Deployment{}
	must(c.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "spillway"}, deployment))
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("64Mi")
	rings := slices.IndexFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--rings=") })
	container.Args[rings] += ",fleet"
	must(c.Update(t.Context(), deployment))
	for i := range 3 {
		must(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: fmt.Sprintf("c%d-kubeconfig", i), Labels: map[string]string{"spillway.dev/cluster": "true"}}}))
	}
	says(1, "! memory is limited to 64Mi, and the objects here need at most about 128Mi (clusters among them: 3)", "set the value resources.limits.memory to 128Mi")
	must(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
	container = &deployment.Spec.Template.Spec.Containers[0]
	container.Args[rings] = strings.TrimSuffix(container.Args[rings], ",fleet")
	must(c.Update(t.Context(), deployment))

	now := metav1.NowMicro()
	holder, seconds := "replica-1", int32(3600)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: manager.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds},
	}
	must(c.Create(t.Context(), lease))
	secret := &corev1.Secret{}
	must(c.Get(t.Context(), client.ObjectKey{Namespace: system, Name: admission.SecretName}, secret))
	secret.Data = map[string][]byte{corev1.TLSCertKey: certificateUntil(t, time.Now().Add(time.Hour))}
	must(c.Update(t.Context(), secret))
	configurations := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	must(c.List(t.Context(), configurations, client.MatchingLabels{"app.kubernetes.io/instance": system}))
	keyed := "/x/" + serve.NewKey()
	for i := range configurations.Items {
		for j := range configurations.Items[i].Webhooks {
			configurations.Items[i].Webhooks[j].ClientConfig.CABundle = secret.Data[corev1.TLSCertKey]
			configurations.Items[i].Webhooks[j].ClientConfig.Service.Path = &keyed
		}
		must(c.Update(t.Context(), &configurations.Items[i]))
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	must(c.List(t.Context(), mutating, client.MatchingLabels{"app.kubernetes.io/instance": system}))
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			mutating.Items[i].Webhooks[j].ClientConfig.CABundle = secret.Data[corev1.TLSCertKey]
			mutating.Items[i].Webhooks[j].ClientConfig.Service.Path = &keyed
		}
		must(c.Update(t.Context(), &mutating.Items[i]))
	}
	users := ofAUser(system)
	must(c.Create(t.Context(), users))
	says(1, "✗ validatingwebhookconfiguration/"+users.Name+" has no key in the path of no-downscale.example.test", "ignore /webhooks/*/clientConfig/service/path")
	must(c.Delete(t.Context(), users))
	says(0, "✓ replica-1 leads", "! the certificate of the webhooks is 0 days old", "it should have been renewed")

	secret.Data[corev1.TLSCertKey] = certificateUntil(t, time.Now().Add(90*24*time.Hour))
	must(c.Update(t.Context(), secret))
	says(0, "✓ the certificate of the webhooks is 0 days old, and valid until")

	old := metav1.NewMicroTime(now.Add(-2 * time.Hour))
	lease.Spec.RenewTime = &old
	must(c.Update(t.Context(), lease))
	says(1, "✗ no replica leads: replica-1 has not renewed Lease spillway-manager for 2h0m")
	must(c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: watched, Name: "spillway"}}))
	must(c.Delete(t.Context(), &configurations.Items[0]))
	says(1, "✗ get, list, watch secrets in namespace "+watched+" is not permitted", "✗ validatingwebhookconfiguration/"+configurations.Items[0].Name+" not found; spillway install")
}

// ofAUser is a webhook configuration as rollout-operator has them, with the path as its chart
// names it.
func ofAUser(system string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	path, class := "/admission/no-downscale", admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: system + "-user", Labels: map[string]string{"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": system}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "no-downscale.example.test", SideEffects: &class, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: system, Name: "rollout-operator", Path: &path}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.test"}, APIVersions: []string{"v1"}, Resources: []string{"none"}},
			}},
		}},
	}
}

// What install grants for all namespaces is what check asks for, also where a rule is about a few
// names.
func TestAnInstallationMayDoAllThatItNeeds(t *testing.T) {
	system := testenv.Namespace(t) + "-system"
	if code, said := runCommand(t, "install", "-n", system, "--rings=config,zones,plans", "--webhooks=false", "--image=spillway:test"); code != 0 {
		t.Fatal(said)
	}
	defer func() {
		if code, said := runCommand(t, "uninstall", "-n", system); code != 0 {
			t.Error(said)
		}
	}()
	_, said := runCommand(t, "check", "-n", system)
	if strings.Contains(said, "is not permitted") || strings.Count(said, "permissions in all namespaces") != 3 {
		t.Errorf("the manager may not do all that it needs:\n%s", said)
	}
}

// certificateUntil is one that is valid until then.
func certificateUntil(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now(), NotAfter: end, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
