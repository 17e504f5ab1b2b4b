package leftout_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission/leftout"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// A change-over that keeps the webhook configurations of Mimir's chart: they have the CA of
// rollout-operator, and refuse what no webhook answers.
func TestConfigurationsOfRolloutOperatorAreFound(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := testenv.Namespace(t), testenv.Namespace(t)
	before, now := authority(t), authority(t)
	asks := func(namespace string) map[string]string {
		return map[string]string{"grafana.com/inject-rollout-operator-ca": "true", "grafana.com/namespace": namespace}
	}
	create := func(name string, labels map[string]string, ca []byte, policy admissionregistrationv1.FailurePolicyType) {
		t.Helper()
		none, url := admissionregistrationv1.SideEffectClassNone, "https://127.0.0.1:1/admission/no-downscale"
		object := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		object.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
			Name: "no-downscale.grafana.com", FailurePolicy: &policy, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": name}},
		}}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
	find := func() []leftout.Configuration {
		t.Helper()
		found, err := leftout.Find(t.Context(), c, ours, []string{ours})
		if err != nil {
			t.Fatal(err)
		}
		var mine []leftout.Configuration
		for _, f := range found { // other tests have their own
			if strings.HasSuffix(f.Name, theirs) {
				mine = append(mine, f)
			}
		}
		return mine
	}

	create("no-downscale-"+theirs, asks(theirs), before, admissionregistrationv1.Fail)
	create("kept-"+theirs, asks(ours), before, admissionregistrationv1.Ignore)
	create("injected-"+theirs, asks(ours), now, admissionregistrationv1.Fail)
	create("unlabeled-"+theirs, nil, before, admissionregistrationv1.Fail)
	if found := find(); len(found) != 0 {
		t.Errorf("it is not known yet which CA is ours: %+v", found)
	}
	create(ours, nil, now, admissionregistrationv1.Fail)
	found := find()
	if len(found) != 2 || found[0].Name != "kept-"+theirs || found[0].Refuses || found[1].Name != "no-downscale-"+theirs || !found[1].Refuses {
		t.Fatalf("found %+v", found)
	}
	for text, want := range map[string]string{
		found[1].What():   "validatingwebhookconfiguration/no-downscale-" + theirs + " asks for a CA and does not have that of this manager: unless another program answers it, the API server refuses",
		found[1].Action(): "--webhook-configurations=no-downscale-" + theirs + ", and kubectl label validatingwebhookconfiguration no-downscale-" + theirs + " --overwrite grafana.com/namespace=" + ours,
		found[0].Action(): "kubectl delete validatingwebhookconfiguration kept-" + theirs + ", as the webhooks",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if strings.Contains(found[0].Action(), "kubectl label") {
		t.Errorf("its labels name this manager: %s", found[0].Action())
	}
}

// authority is a certificate that signs others.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}
