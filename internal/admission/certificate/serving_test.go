package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	ignore = admissionregistrationv1.Ignore
	fail   = admissionregistrationv1.Fail
)

// labels answers with a patch, and says whether it was a dry run.
func labels(_ context.Context, r webhook.Request) webhook.Response {
	return webhook.Patched("", jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{"dry": fmt.Sprint(*r.DryRun), "operation": string(r.Operation)}))
}

// From nothing but a registration, a write is answered: the certificate is made,
// kept, injected and served.
func TestAWriteIsAnswered(t *testing.T) {
	w := newWorld(t, fail, labels)
	probes, _ := w.serve(testenv.Shared().Config())
	w.webhooks.WaitServed(t)
	if err := ready(probes); err != nil {
		t.Error(err)
	}
	cm, err := w.write()
	if err != nil {
		t.Fatal(err)
	}
	if cm.Labels["operation"] != "CREATE" || cm.Labels["dry"] != "false" {
		t.Errorf("created with labels %v", cm.Labels)
	}
	if err := w.client.Update(t.Context(), cm); err != nil || cm.Labels["operation"] != "UPDATE" {
		t.Errorf("updated with labels %v: %v", cm.Labels, err)
	}
	if cm, err = w.write(client.DryRunAll); err != nil || cm.Labels["dry"] != "true" {
		t.Errorf("a dry run gives labels %v: %v", cm.Labels, err)
	}
}

// One replica leads and one waits; both serve, with one certificate.
func TestEveryReplicaServes(t *testing.T) {
	w := newWorld(t, fail, labels)
	first, stop := w.serve(testenv.Shared().Config())
	other := freeAddress(t)
	second, _ := w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.Address = other })
	for _, probes := range []string{first, second} {
		w.eventually(func() error { return ready(probes) })
	}
	one := w.servesOther(nil)
	w.webhooks.Options.Address = other
	if two := w.servesOther(nil); !one.Equal(two) {
		t.Error("they serve different certificates")
	}
	stop()
	if err := ready(second); err != nil {
		t.Error(err)
	}
}

// Until there is a certificate no request is sent to the replica.
func TestNotReadyWithoutACertificate(t *testing.T) {
	w := newWorld(t, fail, labels)
	dir := t.TempDir()
	probes, _ := w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.Source, o.CertDir = admission.Files, dir })
	w.eventually(func() error {
		if err := ready(probes); err == nil || err.Error() != "not ready" {
			return fmt.Errorf("ready: %w", err)
		}
		return nil
	})
	if _, err := w.served(); err == nil {
		t.Error("something is served")
	}
}

// The user's write passes within the time that the webhook is given, whatever
// has become of the webhook.
func TestIgnoredFailures(t *testing.T) {
	slow := make(chan struct{})
	t.Cleanup(func() { close(slow) })
	for name, test := range map[string]struct {
		happens func(w *world)
		// fails is what the API server says of its calls.
		fails   string
		answers bool
	}{
		"nothing": {happens: func(*world) {}, answers: true},
		"it is slow": {happens: func(w *world) {
			w.handle = func(context.Context, webhook.Request) webhook.Response { <-slow; return webhook.Allowed("") }
		}},
		"it panics": {happens: func(w *world) {
			w.handle = func(context.Context, webhook.Request) webhook.Response { panic("no") }
		}},
		"its certificate has expired": {
			happens: func(w *world) { w.clock.set(time.Now().Add(-certificate.LeafLife - time.Hour)) }, fails: "certificate has expired",
		},
		"its certificate is not valid yet": {
			happens: func(w *world) { w.clock.set(time.Now().Add(certificate.LeafLife)) }, fails: "is not yet valid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ignore, labels)
			test.happens(w)
			w.serve(testenv.Shared().Config())
			if test.fails == "" {
				w.webhooks.WaitServed(t)
			} else {
				w.webhooks.WaitCalled(t, test.fails)
			}
			w.mustPass(test.answers)
		})
	}
}

// The same without a server: the port is closed, or silent.
func TestUnreachable(t *testing.T) {
	for name, silent := range map[string]bool{"the manager was killed": false, "silence": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ignore, labels)
			_, stop := w.serve(testenv.Shared().Config())
			w.webhooks.WaitServed(t)
			stop()
			if silent {
				l, err := net.Listen("tcp", w.webhooks.Options.Address)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close() // it accepts connections, and sends nothing
			}
			w.mustPass(false)
		})
	}
}

// mustPass fails unless a write passes within the webhook's timeout, doubled for
// what the write itself takes; and was seen by the webhook, or was not.
func (w *world) mustPass(answered bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Duration(w.declared[0].TimeoutSeconds)*time.Second)
	defer cancel()
	cm := w.configMap()
	if err := w.client.Create(ctx, cm); err != nil {
		w.t.Errorf("the user's write was refused or delayed: %v", err)
	}
	if (len(cm.Labels) > 0) != answered {
		w.t.Errorf("created with labels %v", cm.Labels)
	}
}

// What was begun is finished when the manager is asked to stop.
func TestStopFinishesWhatWasBegun(t *testing.T) {
	begun, finish := make(chan struct{}, 1), make(chan struct{})
	w := newWorld(t, fail, func(ctx context.Context, r webhook.Request) webhook.Response {
		begun <- struct{}{}
		<-finish
		return labels(ctx, r)
	})
	_, stop := w.serve(testenv.Shared().Config())
	w.webhooks.WaitServed(t)
	written := make(chan error, 1)
	go func() {
		_, err := w.write(client.DryRunAll)
		written <- err
	}()
	<-begun
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	w.eventually(func() error { // it listens no more
		if c, err := net.Dial("tcp", w.webhooks.Options.Address); err == nil {
			return errors.Join(errors.New("it still listens"), c.Close())
		}
		return nil
	})
	close(finish)
	if err := <-written; err != nil {
		t.Error(err)
	}
	<-stopped
}

// Nothing older than TLS 1.2 is spoken, nor HTTP/2.
func TestProtocols(t *testing.T) {
	w := newWorld(t, fail, labels)
	w.serve(testenv.Shared().Config())
	w.servesOther(nil)
	for version, spoken := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", w.webhooks.Options.Address, &tls.Config{
			InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, NextProtos: []string{"h2", "http/1.1"},
		})
		if (err == nil) != spoken {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			if p := conn.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
				t.Errorf("%s: speaks %q", tls.VersionName(version), p)
			}
			conn.Close()
		}
	}
}

// rotations is how many requests are sent while the certificate rotates, in all.
const rotations = 2000

// The certificate is renewed, then a new CA is announced, and takes over. All the
// while requests are sent: by the API server, with a failure policy of Fail, and
// by clients that trust what the configuration says, each on a new connection.
func TestRotationUnderLoad(t *testing.T) {
	w := newWorld(t, fail, func(context.Context, webhook.Request) webhook.Response { return webhook.Allowed("") })
	now := time.Now()
	data, err := certificate.MaterialDue(now.Add(-12*time.Hour), now.Add(-6*time.Hour), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	w.createSecret(data)
	w.clock.set(now.Add(-24 * time.Hour)) // nothing is due yet
	w.serve(testenv.Shared().Config())
	w.webhooks.WaitServed(t)
	original := w.servesOther(nil)

	l := &load{world: w}
	stop := l.start()
	w.clock.set(now.Add(-9 * time.Hour))
	w.touch()
	renewed := w.servesOther(original)
	l.more()
	w.clock.set(now.Add(-3 * time.Hour))
	w.touch()
	w.eventually(func() error {
		if b, err := w.bundle(w.namespace); err != nil || authorities(b) != 2 {
			return fmt.Errorf("%d CAs are trusted: %w", authorities(b), err)
		}
		return nil
	})
	if c, err := w.served(); err != nil || !c.Equal(renewed) {
		t.Errorf("it serves another certificate before API servers have seen the CA: %v", err)
	}
	l.more()
	w.clock.set(now.Add(-3 * time.Hour).Add(2 * certificate.Settle))
	w.touch()
	last := w.servesOther(renewed)
	l.more()
	stop()
	if string(last.AuthorityKeyId) == string(renewed.AuthorityKeyId) {
		t.Error("the CA did not change")
	}
	if sent := l.sent.Load(); sent < rotations {
		t.Errorf("%d requests were sent, want %d", sent, rotations)
	}
	t.Logf("%d requests, %d failed", l.sent.Load(), l.failed.Load())
}

// load sends requests until it is stopped.
type load struct {
	*world

	sent, failed atomic.Int64
}

func (l *load) start() (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { l.send(ctx, l.throughAPIServer) })
		group.Go(func() { l.send(ctx, l.directly) })
	}
	return func() { cancel(); group.Wait() }
}

func (l *load) send(ctx context.Context, one func() error) {
	for ctx.Err() == nil {
		if err := one(); err != nil {
			l.failed.Add(1)
			l.t.Errorf("a request failed: %v", err)
			return
		}
		l.sent.Add(1)
	}
}

// more waits until a quarter of the requests more were sent.
func (l *load) more() {
	l.t.Helper()
	goal := l.sent.Load() + rotations/3
	l.eventually(func() error {
		if n := l.sent.Load(); n < goal && !l.t.Failed() {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
}

func (l *load) throughAPIServer() error {
	_, err := l.write(client.DryRunAll)
	return err
}

const minimalReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE"}}`

func (l *load) directly() error {
	bundle, err := l.bundle(l.namespace)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	res, err := c.Post(l.webhooks.URL(l.t, l.declared[0].Name), "application/json", strings.NewReader(minimalReview))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), `"allowed":true`) {
		return fmt.Errorf("answered with %s: %w", body, err)
	}
	return nil
}
