package hosted

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// readApart is how much time is at least between reading the files of a certificate and
// reading them again.
const readApart = 10 * time.Second

// Certificate is that of the server: of tls.crt and tls.key in a folder, and as long as these
// do not exist, one that the server has signed itself.
type Certificate struct {
	folder string
	now    func() time.Time

	mu       sync.Mutex
	own      *tls.Certificate
	ofFiles  *tls.Certificate
	raw      []byte
	lastRead time.Time
}

// NewCertificate returns the one of a folder, or of none, for a host.
func NewCertificate(folder, host string, now func() time.Time) (*Certificate, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", host, err)
	}
	own, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", host, err)
	}
	c := &Certificate{folder: folder, now: now, own: &own}
	return c, c.read()
}

// Get returns the certificate, as files that were renewed have it.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.now().Before(c.lastRead.Add(readApart)) {
		_ = c.read() // what was read before serves until the files are whole again
	}
	if c.ofFiles != nil {
		return c.ofFiles, nil
	}
	return c.own, nil
}

func (c *Certificate) read() error {
	c.lastRead = c.now()
	if c.folder == "" {
		return nil
	}
	certificate, err := os.ReadFile(filepath.Join(c.folder, "tls.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(c.folder, "tls.key"))
	if err != nil {
		return fmt.Errorf("read the key of the certificate: %w", err)
	}
	if raw := slices.Concat(certificate, key); !bytes.Equal(raw, c.raw) {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("certificate in %s: %w", c.folder, err)
		}
		c.ofFiles, c.raw = &pair, raw
	}
	return nil
}

// TLS is how the server serves: with a certificate, and to clients whose certificates are of
// the authorities, if there are any; others have none.
func TLS(of *Certificate, authorities *x509.CertPool) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: of.Get}
	if authorities != nil {
		c.ClientCAs, c.ClientAuth = authorities, tls.RequireAndVerifyClientCert
	}
	return c
}

// Trusting is how a client asks servers whose certificates are of some authorities.
func Trusting(pool *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
}
