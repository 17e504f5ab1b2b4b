package hosted

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
)

const (
	// secretBytes is how long a secret is at least, keyBytes how long the keys are that are
	// derived from it: those of AES-256.
	secretBytes, keyBytes = 32, 32
	// forCookies and forForms tell the keys apart that are derived from one secret.
	forCookies, forForms = "spillway dashboard cookies", "spillway dashboard forms"
)

// Keys are the secrets that cookies and forms are sealed with: by the first one. What another
// one has sealed is still read, so that the first one can be replaced without ending sessions.
type Keys struct{ secrets [][]byte }

// NewKeys makes one that only this process has: sessions end with it.
func NewKeys() *Keys { return &Keys{[][]byte{[]byte(rand.Text() + rand.Text())}} }

// ParseKeys reads one from each line.
func ParseKeys(text string) (*Keys, error) {
	k := &Keys{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) < secretBytes {
			return nil, fmt.Errorf("a key has %d characters, fewer than %d; make one with openssl rand -base64 32", len(line), secretBytes)
		}
		k.secrets = append(k.secrets, []byte(line))
	}
	if len(k.secrets) == 0 {
		return nil, fmt.Errorf("there is no key; make one with openssl rand -base64 32")
	}
	return k, nil
}

// ciphers are what cookies are sealed and read with.
func (k *Keys) ciphers() ([]cipher.AEAD, error) {
	all := make([]cipher.AEAD, len(k.secrets))
	for i, secret := range k.secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, forCookies, keyBytes)
		if err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
		if all[i], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("make a key for cookies: %w", err)
		}
	}
	return all, nil
}

// forms is what the tokens of forms are made with.
func (k *Keys) forms() ([]byte, error) {
	key, err := hkdf.Key(sha256.New, k.secrets[0], nil, forForms, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("make a key for forms: %w", err)
	}
	return key, nil
}
