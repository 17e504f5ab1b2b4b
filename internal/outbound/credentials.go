package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The keys of a Secret.
const (
	keyToken = "token"
	keyCA    = "ca.crt"
)

var errNoCertificate = errors.New(keyCA + " contains no certificate")

// Credentials are what a Secret has for a host.
type Credentials struct {
	header string
	tls    *tls.Config
	// hidden are texts that must be in nothing that is returned.
	hidden []string
}

// CredentialsFor reads a Secret, nil for none, if it may be used for a host.
func CredentialsFor(secret *corev1.Secret, host string) (*Credentials, error) {
	if secret == nil {
		return &Credentials{tls: &tls.Config{MinVersion: tls.VersionTLS12}}, nil
	}
	if err := permitsHost(secret, host); err != nil {
		return nil, err
	}
	return CredentialsOf(secret)
}

// CredentialsOf reads a Secret. They may be used for the host that the Secret itself has the
// address of, and for no other.
func CredentialsOf(secret *corev1.Secret) (*Credentials, error) {
	c := &Credentials{tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	for key, value := range secret.Data {
		if key != keyCA && key != corev1.TLSCertKey {
			c.Hide(string(value))
		}
	}
	c.header = authorization(secret.Data)
	_, encoded, _ := strings.Cut(c.header, " ")
	c.Hide(encoded)
	return c, c.certificates(secret)
}

// permitsHost checks that the Secret itself names the host.
func permitsHost(secret *corev1.Secret, host string) error {
	named := vocabulary.GateHosts.Get(secret.Annotations)
	hosts, err := ParseHosts(strings.Fields(strings.ReplaceAll(named, ",", " ")))
	if err != nil {
		return fmt.Errorf("the Secret %s: annotation %s: %w", secret.Name, vocabulary.GateHosts.Native, err)
	}
	if !hosts.named(host) {
		return fmt.Errorf("the Secret %s is not for %s; to permit it, name the host in its annotation %s", secret.Name, host, vocabulary.GateHosts.Native)
	}
	return nil
}

func authorization(data map[string][]byte) string {
	user, password := data[corev1.BasicAuthUsernameKey], data[corev1.BasicAuthPasswordKey]
	switch token := strings.TrimSpace(string(data[keyToken])); {
	case token != "":
		return "Bearer " + token
	case len(user)+len(password) > 0:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(string(user)+":"+string(password)))
	default:
		return ""
	}
}

func (c *Credentials) certificates(secret *corev1.Secret) error {
	if ca := secret.Data[keyCA]; len(ca) > 0 {
		c.tls.RootCAs = x509.NewCertPool()
		if !c.tls.RootCAs.AppendCertsFromPEM(ca) {
			return fmt.Errorf("the Secret %s: %w", secret.Name, errNoCertificate)
		}
	}
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 && len(key) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("the Secret %s: %s and %s are not a pair", secret.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	c.tls.Certificates = []tls.Certificate{pair}
	return nil
}

// shortest is how long a text must be to be hidden: a shorter one is in many words.
const shortest = 4

// Hide adds a text that [Credentials.Redact] removes, as it is and as an error quotes it.
func (c *Credentials) Hide(text string) {
	for _, line := range append(strings.Split(text, "\n"), text) {
		if line = strings.TrimSpace(line); len(line) < shortest {
			continue
		}
		c.hidden = append(c.hidden, line)
		if quoted := strconv.Quote(line); quoted != `"`+line+`"` {
			c.hidden = append(c.hidden, quoted[1:len(quoted)-1])
		}
	}
}

// Redact removes what is hidden from a text: every byte that is part of it, also where one
// hidden text is within another, or where two overlap. Nil hides nothing.
func (c *Credentials) Redact(text string) string {
	if c == nil {
		return text
	}
	hidden := make([]bool, len(text))
	for _, h := range c.hidden {
		mark(hidden, text, h)
	}
	b := strings.Builder{}
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("[redacted]")
		}
	}
	return b.String()
}

// mark marks the bytes of a text at which another one is.
func mark(marked []bool, text, other string) {
	for from, done := 0, 0; ; from++ {
		at := strings.Index(text[from:], other)
		if at < 0 {
			return
		}
		from += at
		for i := max(from, done); i < from+len(other); i++ {
			marked[i] = true
		}
		done = from + len(other)
	}
}

// apply adds the credentials to a request.
func (c *Credentials) apply(req *http.Request) {
	if c.header != "" {
		req.Header.Set("Authorization", c.header)
	}
}
