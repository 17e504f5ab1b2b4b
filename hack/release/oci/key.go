package oci

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// Signer is a private key, as cosign generate-key-pair writes it.
type Signer struct{ signer signature.SignerVerifier }

// ParseKey reads a private key. The password is that of an encrypted one.
func ParseKey(raw, password []byte) (Signer, error) {
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(raw, func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		return Signer{}, fmt.Errorf("read the private key: %w; it must be one that cosign generate-key-pair writes, with its password in COSIGN_PASSWORD", err)
	}
	signer, err := signature.LoadSignerVerifier(key, crypto.SHA256)
	if err != nil {
		return Signer{}, fmt.Errorf("use the private key: %w", err)
	}
	return Signer{signer}, nil
}

// Verifier verifies with the public key of the same pair.
func (s Signer) Verifier() Verifier { return Verifier{s.signer} }

func (s Signer) sign(payload []byte) (string, error) {
	raw, err := s.signer.SignMessage(bytes.NewReader(payload))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// Verifier is a public key.
type Verifier struct{ verifier signature.Verifier }

// ParsePublicKey reads a public key.
func ParsePublicKey(raw []byte) (Verifier, error) {
	key, err := cryptoutils.UnmarshalPEMToPublicKey(raw)
	if err != nil {
		return Verifier{}, fmt.Errorf("read the public key: %w; it must be one that cosign generate-key-pair writes", err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return Verifier{}, fmt.Errorf("use the public key: %w", err)
	}
	return Verifier{verifier}, nil
}

// errOtherKey is what a signature of another key is.
var errOtherKey = errors.New("the signature is not of this key")

func (v Verifier) verify(payload []byte, encoded string) error {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("read a signature: %w", err)
	}
	if err := v.verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(payload)); err != nil {
		return errOtherKey
	}
	return nil
}
