package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

const (
	// authorityLife and leafLife are how long what we generate is valid. The last
	// third of it is for the successor.
	authorityLife = 2 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// skew is by how much clocks of API servers may differ from ours.
	skew = time.Hour
)

// The keys of the Secret, and the names of the files.
const (
	keyBundle       = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyLeaf         = "tls.crt"
	keyLeafKey      = "tls.key"
)

// material is all that is kept of a certificate: the leaf with its key, the CAs
// to trust (the newest first), and the key of the newest, if it is ours.
type material map[string][]byte

// keyring is material that was parsed. What could not be is nil.
type keyring struct {
	leaf *tls.Certificate
	// bundle are the CAs to trust, the newest first.
	bundle []*x509.Certificate
	// signer is the key of the newest CA.
	signer crypto.Signer
}

// check says why the leaf must not be served to hosts, or nil. Without a bundle
// it cannot say who signed it.
func (k keyring) check(now time.Time, hosts []string) error {
	if k.leaf == nil {
		return errors.New("no certificate with its key found, or it is malformed")
	}
	for _, host := range hosts {
		if err := k.leaf.Leaf.VerifyHostname(host); err != nil {
			return fmt.Errorf("the certificate does not cover %q: %w", host, err)
		}
	}
	if now.Before(k.leaf.Leaf.NotBefore) || !now.Before(k.leaf.Leaf.NotAfter) {
		return fmt.Errorf("the certificate is valid from %s to %s", day(k.leaf.Leaf.NotBefore), day(k.leaf.Leaf.NotAfter))
	}
	if len(k.bundle) == 0 {
		return nil
	}
	if _, err := k.leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool(k.bundle), Intermediates: pool(k.chain()), CurrentTime: now}); err != nil {
		return fmt.Errorf("the certificate is not signed by its CA: %w", err)
	}
	return nil
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// chain are the intermediate certificates that come with the leaf.
func (k keyring) chain() []*x509.Certificate {
	var chain []*x509.Certificate
	for _, der := range k.leaf.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			chain = append(chain, c)
		}
	}
	return chain
}

func pool(certificates []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certificates {
		p.AddCert(c)
	}
	return p
}

// canSign is true if the newest CA is valid and its key exists.
func (k keyring) canSign(now time.Time) bool {
	return k.signer != nil && !now.Before(k.bundle[0].NotBefore) && now.Before(k.bundle[0].NotAfter)
}

// signedByNewest is true if the leaf is not signed by a CA that is being replaced.
func (k keyring) signedByNewest() bool {
	return k.leaf.Leaf.CheckSignatureFrom(k.bundle[0]) == nil
}

// due is when the successor of a certificate is made.
func due(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3)
}

// last is until when a successor may be waited for.
func last(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 9)
}

// hostsOf are the names and addresses that a certificate covers.
func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// newAuthority puts a new CA in front of the bundle; those behind it that have
// expired are dropped. The leaf stays as it is.
func (m material) newAuthority(now time.Time) (material, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of a CA: %w", err)
	}
	template := &x509.Certificate{ // without a serial number it gets a random one
		Subject:   pkix.Name{Organization: []string{"spillway.dev"}, CommonName: "Spillway webhooks"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign a CA: %w", err)
	}
	rawKey, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	bundle := encodeCertificate(der)
	for _, ca := range parseBundle(m[keyBundle]) {
		if now.Before(ca.NotAfter) {
			bundle = append(bundle, encodeCertificate(ca.Raw)...)
		}
	}
	return m.with(keyBundle, bundle, keyAuthorityKey, rawKey), nil
}

// newLeaf makes a leaf for hosts, signed by the newest CA.
func (m material) newLeaf(now time.Time, hosts []string) (material, error) {
	by := parse(m)
	if by.signer == nil {
		return nil, errors.New("no CA to sign with")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leafFor(now, hosts, by.bundle[0]), by.bundle[0], key.Public(), by.signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	rawKey, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return m.with(keyLeaf, encodeCertificate(der), keyLeafKey, rawKey), nil
}

// parse reads what exists. It never fails: malformed material is a keyring
// with nothing in it, and is replaced by the source that makes it.
func parse(m material) keyring {
	k := keyring{bundle: parseBundle(m[keyBundle])}
	if leaf, err := tls.X509KeyPair(m[keyLeaf], m[keyLeafKey]); err == nil {
		k.leaf = &leaf
	}
	if len(k.bundle) > 0 {
		k.signer = parseSigner(m[keyAuthorityKey], k.bundle[0])
	}
	return k
}

// parseSigner returns nil unless the key is that of the CA.
func parseSigner(raw []byte, ca *x509.Certificate) crypto.Signer {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	ecKey, ok := key.(*ecdsa.PrivateKey)
	if !ok || !ecKey.PublicKey.Equal(ca.PublicKey) {
		return nil
	}
	return ecKey
}

// leafFor does not outlive its CA.
func leafFor(now time.Time, hosts []string, ca *x509.Certificate) *x509.Certificate {
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"spillway.dev"}, CommonName: "Spillway webhooks server"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(ca.NotAfter) {
		template.NotAfter = ca.NotAfter
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// with is a copy with other values for two keys.
func (m material) with(key string, value []byte, key2 string, value2 []byte) material {
	c := material{key: value, key2: value2}
	for _, k := range []string{keyBundle, keyAuthorityKey, keyLeaf, keyLeafKey} {
		if _, replaced := c[k]; !replaced {
			c[k] = m[k]
		}
	}
	return c
}

// trusted is true if a caBundle has all CAs of the other, so that what either
// of these has signed is accepted.
func trusted(caBundle, bundle []byte) bool {
	has := parseBundle(caBundle)
	return !slices.ContainsFunc(parseBundle(bundle), func(ca *x509.Certificate) bool {
		return !slices.ContainsFunc(has, ca.Equal)
	})
}

// parseBundle returns nil if anything in it is no CA.
func parseBundle(raw []byte) []*x509.Certificate {
	var bundle []*x509.Certificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !ca.IsCA {
			return nil
		}
		bundle = append(bundle, ca)
	}
	return bundle
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// same is true if two bundles are equal byte for byte.
func same(a, b []byte) bool { return bytes.Equal(a, b) }
