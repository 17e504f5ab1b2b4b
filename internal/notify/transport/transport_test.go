package transport_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/transport"
	"github.com/spillway-dev/spillway/internal/outbound"
)

var update = flag.Bool("update", false, "write testdata")

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// receiver is a server that remembers what it was sent.
type receiver struct {
	url    string
	status int
	says   string

	path   string
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP implements [http.Handler].
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.path, r.header = req.Method+" "+req.URL.Path, req.Header
	r.body, _ = io.ReadAll(req.Body)
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.says)
}

func message(phase v1alpha1.NotifierPhase) *transport.Message {
	m := v1alpha1.NotifierMessage{
		ID: "u1/3/1777896000000000/" + string(phase), Phase: phase, Ring: "zones", Kind: "RolloutGroup", Name: "ingester", Rollout: "3",
		Reason: "Complete", Severity: "info", At: metav1.NewMicroTime(noon),
	}
	if phase == v1alpha1.RolloutStopped {
		m.Reason, m.Severity = "GateRefused", "error"
		m.Sentence = "zone-b is stopped: gate error_rate was refused: *<!channel>* & `@everyone`; last: value 0.2"
	}
	return &transport.Message{NotifierMessage: m, Namespace: "shop"}
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "channel"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func spec(t *testing.T, text string) *v1alpha1.NotifierSpec {
	t.Helper()
	s := &v1alpha1.NotifierSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func loopback(t *testing.T) outbound.Network {
	t.Helper()
	hosts, err := outbound.ParseHosts([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return outbound.Network{Hosts: hosts}
}

// send sends a message, and returns why that failed.
func send(t *testing.T, network outbound.Network, s *v1alpha1.NotifierSpec, secret *corev1.Secret, m *transport.Message) *decision.Failure {
	t.Helper()
	target, err := transport.To(network, "shop", s, secret)
	if err != nil {
		return &decision.Failure{Text: err.Error()}
	}
	return target.Send(t.Context(), m, noon)
}

// TestBodies compares what each transport sends with a file.
func TestBodies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, path, kind string }{
		"webhook":      {"webhook: {}", "POST /hooks/T0/secret", "application/cloudevents+json; charset=utf-8"},
		"slack":        {"chat: {format: Slack}", "POST /hooks/T0/secret", "application/json"},
		"teams":        {"chat: {format: Teams}", "POST /hooks/T0/secret", "application/json"},
		"discord":      {"chat: {format: Discord}", "POST /hooks/T0/secret", "application/json"},
		"alertmanager": {"alertmanager: {}", "POST /hooks/T0/secret/api/v2/alerts", "application/json"},
	} {
		for _, phase := range []v1alpha1.NotifierPhase{v1alpha1.RolloutStopped, v1alpha1.RolloutEnded, v1alpha1.RolloutReturned, v1alpha1.RolloutResumed} {
			if phase == v1alpha1.RolloutResumed && name != transport.Alertmanager {
				continue // it is sent to no other
			}
			t.Run(name+" "+string(phase), func(t *testing.T) {
				t.Parallel()
				r := newReceiver(t)
				if failure := send(t, loopback(t), spec(t, test.spec), secret(map[string]string{"address": r.url + "/hooks/T0/secret\n"}), message(phase)); failure != nil {
					t.Fatal(failure.Text)
				}
				if r.path != test.path || r.header.Get("Content-Type") != test.kind || r.header.Get("Spillway-Signature") != "" {
					t.Errorf("%s, %s", r.path, r.header)
				}
				golden(t, filepath.Join("testdata", name+"-"+strings.ToLower(string(phase))+".json"), r.body)
			})
		}
	}
}

func golden(t *testing.T, path string, body []byte) {
	t.Helper()
	b := &bytes.Buffer{}
	if err := json.Indent(b, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestSignature checks the signature as a receiver does, and the credentials.
func TestSignature(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	keys := secret(map[string]string{"address": r.url, "hmac-key": "a key\n", "token": "hunter22"})
	if failure := send(t, loopback(t), spec(t, "webhook: {}"), keys, message(v1alpha1.RolloutEnded)); failure != nil {
		t.Fatal(failure.Text)
	}
	at, signed, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Spillway-Signature"), "t="), ",v1=")
	mac := hmac.New(sha256.New, []byte("a key"))
	mac.Write([]byte(at + "." + string(r.body)))
	if want := hex.EncodeToString(mac.Sum(nil)); signed != want || at != fmt.Sprint(noon.Unix()) {
		t.Errorf("signed %s at %s, want %s", signed, at, want)
	}
	if got := r.header.Get("Authorization"); got != "Bearer hunter22" {
		t.Error(got)
	}
}

// TestFailures checks what is a failure, and that nothing of the Secret is in any.
func TestFailures(t *testing.T) {
	t.Parallel()
	const token = "T0SECRET"
	for name, test := range map[string]struct {
		status   int
		says     string
		want     string
		rejected bool
	}{
		"rejected":             {400, "invalid_payload", "status 400: invalid_payload", true},
		"too large":            {413, "", "status 413", true},
		"not for us":           {403, "no " + token + " at all\n  hunter22", "status 403: no [redacted] at all [redacted]", false},
		"gone":                 {410, "", "status 410", false},
		"busy":                 {429, "", "status 429", false},
		"out of order":         {503, strings.Repeat("x", 500), "status 503: " + strings.Repeat("x", 117) + "...", false},
		"an endless complaint": {500, strings.Repeat("x", outbound.MaxResponse+1), "the response is longer than 1048576 bytes", false},
		"a redirect":           {302, "", "it redirects (status 302), which is not followed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			r.status, r.says = test.status, test.says
			failure := send(t, loopback(t), spec(t, "webhook: {}"), secret(map[string]string{"address": r.url + "/services/" + token, "token": "hunter22"}), message(v1alpha1.RolloutEnded))
			if failure == nil || failure.Text != test.want || failure.Rejected != test.rejected {
				t.Errorf("%+v", failure)
			}
		})
	}
}

// TestUnreachable checks that neither host nor path are in the error, and that the address is
// guarded as that of a gate.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	failure := send(t, loopback(t), spec(t, "chat: {format: Slack}"), secret(map[string]string{"address": server.URL + "/T0SECRET"}), message(v1alpha1.RolloutEnded))
	if failure == nil || !strings.HasSuffix(failure.Text, "connection refused") || strings.Contains(failure.Text, "127.0.0.1") || strings.Contains(failure.Text, "SECRET") {
		t.Errorf("%+v", failure)
	}
	for address, want := range map[string]string{
		"http://127.0.0.1:1/":                    "to permit it, name the address in --gate-hosts",
		"http://169.254.169.254/latest":          "to permit it, name the address in --gate-hosts",
		"http://10.96.0.1/":                      "to permit it, name the host in --gate-hosts",
		"ftp://127.0.0.1/":                       "the Secret channel has no valid address: set its key address to an http or https URL",
		"http://user:hunter22@127.0.0.1/":        "the Secret channel has no valid address",
		"":                                       "the Secret channel has no valid address",
		"http://hunter22.default.invalid/secret": "no such host",
	} {
		failure := send(t, outbound.Network{}, spec(t, "webhook: {}"), secret(map[string]string{"address": address}), message(v1alpha1.RolloutEnded))
		if failure == nil || !strings.Contains(failure.Text, want) && want != "no such host" || strings.Contains(failure.Text, "hunter22") {
			t.Errorf("%s: %+v", address, failure)
		}
	}
}

// TestSilence checks that a receiver that does not answer ends with the request.
func TestSilence(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	target, err := transport.To(loopback(t), "shop", spec(t, "webhook: {}"), secret(map[string]string{"address": server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if failure := target.Send(ctx, message(v1alpha1.RolloutEnded), noon); failure == nil || failure.Text != "no answer within 15s" {
		t.Errorf("%+v", failure)
	}
}

// TestTexts has what a person reads of each kind.
func TestTexts(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]v1alpha1.NotifierMessage{
		"RolloutGroup shop/ingester: rollout 3 started; spillway explain rolloutgroup/ingester -n shop":        {Phase: v1alpha1.RolloutStarted, Kind: "RolloutGroup", Name: "ingester", Rollout: "3"},
		"Instance shop/kafka: plan deploy ended (Complete); spillway history instance/kafka -n shop":           {Phase: v1alpha1.RolloutEnded, Reason: "Complete", Kind: "Instance", Name: "kafka", Rollout: "deploy"},
		"Module shop/web: revision web-2 was returned to what was before; spillway explain module/web -n shop": {Phase: v1alpha1.RolloutReturned, Kind: "Module", Name: "web", Rollout: "web-2"},
		"Secret shop/db: content 9676b5e stopped; spillway explain secret/db -n shop":                          {Phase: v1alpha1.RolloutStopped, Kind: "Secret", Name: "db", Rollout: "9676b5e"},
		"ConfigMap shared/limits: content 9676b5e started; spillway explain configmap/limits -n shared":        {Phase: v1alpha1.RolloutStarted, Kind: "ConfigMap", Name: "shared/limits", Rollout: "9676b5e"},
		"BootstrapModule shop/flux: revision flux-1 started; spillway explain bootstrapmodule/flux -n shop":    {Phase: v1alpha1.RolloutStarted, Kind: "BootstrapModule", Name: "flux", Rollout: "flux-1"},
	} {
		m := transport.Message{NotifierMessage: m, Namespace: "shop"}
		if got := m.Headline() + "; " + m.Next(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
