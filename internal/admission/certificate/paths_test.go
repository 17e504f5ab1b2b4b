package certificate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Keys are rotated while requests come, over two replicas, and none fails: not by an API
// server that has the new key before a replica, nor by one that has the former still.
func TestRotationOfKeysUnderLoad(t *testing.T) {
	w := newWorld(t, fail, labels)
	w.serve(testenv.Shared().Config())
	other := freeAddress(t)
	w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.Address = other })
	w.webhooks.WaitServed(t)
	keys := func() string {
		s, err := w.secret()
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Data[certificate.KeyPaths])
	}
	l := &load{world: w}
	stop := l.start()
	for range 3 {
		before, path := keys(), w.webhooks.URL(t, w.declared[0].Name)
		w.clock.set(w.clock.now().Add(25 * time.Hour))
		w.touch()
		w.eventually(func() error {
			if keys() == before || w.webhooks.URL(t, w.declared[0].Name) == path {
				return errors.New("the key is not rotated yet")
			}
			return nil
		})
		l.more()
	}
	stop()
	t.Logf("%d requests, %d failed", l.sent.Load(), l.failed.Load())
}

// A configuration of a user has its paths kept current, and nothing else of it. Who puts the path
// back is corrected; while it is back, requests are answered without effect.
func TestAPathOfAUser(t *testing.T) {
	var asked atomic.Int64
	w := newWorld(t, fail, func(ctx context.Context, r webhook.Request) webhook.Response {
		asked.Add(1)
		return labels(ctx, r)
	})
	name := w.namespace + "-user"
	w.user(name, w.asks())
	at, elsewhere := "https://"+w.webhooks.Options.Address+path, "https://evil.example.test"+path
	w.patch(name, `{"webhooks":[{"name":"a.example.test","clientConfig":{"url":"`+at+`"}},{"name":"b.example.test","clientConfig":{"url":"`+elsewhere+`"}}]}`)
	w.serve(testenv.Shared().Config(), everywhere)
	keyed := func() error {
		if url := *w.configuration(name).Webhooks[0].ClientConfig.URL; !strings.HasPrefix(url, at+"/") {
			return errors.New("it has no key: " + url)
		}
		return nil
	}
	w.eventually(keyed)
	if url := *w.configuration(name).Webhooks[1].ClientConfig.URL; url != elsewhere {
		t.Errorf("another server receives the key: %s", url)
	}
	w.webhooks.WaitServed(t)
	before := asked.Load()
	w.patch(name, `{"webhooks":[{"name":"a.example.test","clientConfig":{"url":"`+at+`"}}]}`)
	w.eventually(keyed)
	if asked.Load() != before {
		t.Error("the handler was asked without a key")
	}
}

// Our own configurations name no path; and where one is put back to what it was, the API server is
// answered, without the handler, until the manager has corrected it.
func TestWithoutAKeyTheFailurePolicyAnswers(t *testing.T) {
	for policy, allowed := range map[admissionregistrationv1.FailurePolicyType]bool{ignore: true, fail: false} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, policy, func(context.Context, webhook.Request) webhook.Response {
				t.Error("the handler was asked without a key")
				return webhook.Allowed("")
			})
			_, stop := w.serve(testenv.Shared().Config())
			w.webhooks.WaitServed(t)
			stop()
			w.patch(w.namespace, `{"webhooks":[{"name":"configmaps.test.spillway.dev","clientConfig":{"url":"https://`+w.webhooks.Options.Address+path+`"}}]}`)
			w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.Own, o.Only = []string{"none"}, []string{"none"} })
			w.eventually(func() error {
				_, err := w.served()
				return err
			})
			w.eventually(func() error {
				err := w.client.Create(t.Context(), w.configMap())
				if allowed && err == nil || !allowed && err != nil && strings.Contains(err.Error(), admission.NoKey) {
					return nil
				}
				return errors.Join(errors.New("not answered yet"), err)
			})
		})
	}
}

// A replica whose clock is wrong by a year replaces nothing that is valid, and serves.
func TestAWrongClockReplacesNothing(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 365 * 24 * time.Hour, "behind": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fail, labels)
			right := func(o *admission.Options) { o.Now, o.ServerTime = time.Now, nil }
			w.serve(testenv.Shared().Config(), right)
			w.webhooks.WaitServed(t)
			before, err := w.secret()
			if err != nil {
				t.Fatal(err)
			}
			other := freeAddress(t)
			probes, _ := w.serve(testenv.Shared().Config(), func(o *admission.Options) {
				o.Address, o.ServerTime = other, nil // which asks the API server
				o.Now = func() time.Time { return time.Now().Add(by) }
			})
			w.eventually(func() error { return ready(probes) })
			after, err := w.secret()
			if err != nil {
				t.Fatal(err)
			}
			if before.ResourceVersion != after.ResourceVersion {
				t.Error("it has replaced the certificate or the keys")
			}
		})
	}
}

// An API server that shows a certificate of the configured CA needs no key; others with one of
// another CA, or of another name, are not API servers. A CA that is replaced counts from then on, and one
// that is damaged changes nothing.
func TestAnAPIServerMayShowACertificate(t *testing.T) {
	w := newWorld(t, fail, labels)
	ca, first := authority(t)
	next, second := authority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	written := time.Now()
	write := func(raw []byte) {
		t.Helper()
		written = written.Add(time.Second)
		if err := errors.Join(os.WriteFile(file, raw, 0o600), os.Chtimes(file, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	write(ca)
	w.serve(testenv.Shared().Config(), func(o *admission.Options) { o.ClientCA, o.ClientNames = file, []string{"kube-apiserver"} })
	w.webhooks.WaitServed(t)
	expect := func(trusted, other func(string) tls.Certificate) {
		t.Helper()
		for _, test := range []struct {
			certificates []tls.Certificate
			allowed      bool
		}{
			{[]tls.Certificate{trusted("kube-apiserver")}, true},
			{[]tls.Certificate{trusted("another")}, false},
			{[]tls.Certificate{other("kube-apiserver")}, false},
			{nil, false},
		} {
			// one of another CA ends the connection
			body, err := post(t, "https://"+w.webhooks.Options.Address+path, test.certificates)
			if got := err == nil && strings.Contains(body, `"allowed":true`); got != test.allowed {
				t.Errorf("%d certificates: %s: %v", len(test.certificates), body, err)
			}
		}
	}
	expect(first, second)
	write([]byte("no certificate"))
	expect(first, second)
	write(next)
	expect(second, first)
}

// post sends a review on a connection of its own.
func post(t *testing.T, url string, certificates []tls.Certificate) (string, error) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, DisableKeepAlives: true}}
	res, err := c.Post(url, "application/json", strings.NewReader(minimalReview))
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

// authority is a CA, and what signs certificates of clients.
func authority(t *testing.T) (ca []byte, sign func(name string) tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), func(name string) tls.Certificate {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: template.NotBefore, NotAfter: template.NotAfter,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		signed, err := x509.CreateCertificate(rand.Reader, leaf, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
	}
}
