package hosted

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// The certificate is our own until there are files, and then follows them; files that are not
// whole change nothing.
func TestCertificate(t *testing.T) {
	now, folder := time.Now(), t.TempDir()
	c, err := NewCertificate(folder, "spillway.example.test", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		t.Helper()
		got, err := c.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(got.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.DNSNames[0]
	}
	write := func(host string) {
		t.Helper()
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, raw := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
			if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	is := func(want string) {
		t.Helper()
		if got := names(); got != want {
			t.Errorf("it is of %s, not of %s", got, want)
		}
	}
	is("spillway.example.test")
	write("one.example.test")
	is("spillway.example.test") // it was read a moment ago
	now = now.Add(readApart)
	is("one.example.test")
	write("two.example.test")
	if err := os.WriteFile(filepath.Join(folder, "tls.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(readApart)
	is("one.example.test")
	write("three.example.test")
	now = now.Add(readApart)
	is("three.example.test")
	if err := os.WriteFile(filepath.Join(folder, "tls.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewCertificate(folder, "spillway.example.test", time.Now); err == nil {
		t.Error("it starts with a certificate that is none")
	}
}

// signed is a certificate for clients, signed by another one or self-signed.
func signed(t *testing.T, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "proxy"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: by == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// A proxy that is known by its certificate is not known without it, and not by another one.
func TestProxyCertificate(t *testing.T) {
	w := proxied(t, "127.0.0.0/8", "::1/128")
	w.pages.Proxy.Certified = true
	authority, other := signed(t, nil), signed(t, nil)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	own, err := NewCertificate("", "127.0.0.1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(w.pages)
	server.TLS = TLS(own, pool)
	server.StartTLS()
	defer server.Close()
	w.pages.URL.Host = server.Listener.Addr().String()
	for name, test := range map[string]struct {
		certificate *tls.Certificate
		isLetIn     bool
	}{"the proxy's": {signed(t, authority), true}, "none": {nil, false}, "of another authority": {signed(t, other), false}} {
		config := &tls.Config{InsecureSkipVerify: true}
		if test.certificate != nil {
			config.Certificates = []tls.Certificate{*test.certificate}
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-User", "anna")
		answer, err := c.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		if isLetIn := err == nil && answer.StatusCode == http.StatusOK; isLetIn != test.isLetIn {
			t.Errorf("%s: let in %t: %v", name, isLetIn, err)
		}
		c.CloseIdleConnections()
	}
}
