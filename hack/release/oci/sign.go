package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// How cosign stores a signature: an image whose layers are what is signed, with the
// signature in an annotation, and a tag that is made from the digest.
const (
	payloadType types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"

	signatureAnnotation string = "dev.cosignproject.cosign/signature"
)

// signatureTag is where the signature of a manifest is.
func signatureTag(repository name.Repository, digest v1.Hash) name.Tag {
	return repository.Tag(digest.Algorithm + "-" + digest.Hex + ".sig")
}

// Sign implements [Signing]: it adds a signature, unless there is one of this key already, so that
// a push that is done again does nothing twice.
func (s Signer) Sign(_ context.Context, manifest name.Digest, options ...remote.Option) error {
	digest, err := v1.NewHash(manifest.DigestStr())
	if err != nil {
		return fmt.Errorf("sign %s: %w", manifest, err)
	}
	repository := manifest.Context()
	if s.Verifier().verifySignature(repository, digest, options) == nil {
		return nil
	}
	img, err := s.signed(repository, digest)
	if err != nil {
		return err
	}
	if err := remote.Write(signatureTag(repository, digest), img, options...); err != nil {
		return fmt.Errorf("push the signature of %s: %w", digest, err)
	}
	return nil
}

// signed is the signature of a manifest, as an image.
func (s Signer) signed(repository name.Repository, digest v1.Hash) (v1.Image, error) {
	text, err := json.Marshal(payload.Cosign{Image: repository.Digest(digest.String())})
	if err != nil {
		return nil, fmt.Errorf("write what is signed: %w", err)
	}
	encoded, err := s.sign(text)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{
		Layer: static.NewLayer(text, payloadType), MediaType: payloadType, Annotations: map[string]string{signatureAnnotation: encoded},
	})
	if err != nil {
		return nil, fmt.Errorf("write the signature: %w", err)
	}
	return img, nil
}

// Verify checks that an image was signed with a key, and that every byte that a client
// would pull is what was signed. It returns the digest.
func (v Verifier) Verify(ctx context.Context, reference string, options ...remote.Option) (name.Digest, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return name.Digest{}, fmt.Errorf("image %q: %w", reference, err)
	}
	options = append(options, remote.WithContext(ctx))
	found, err := remote.Get(ref, options...)
	if err != nil {
		return name.Digest{}, fmt.Errorf("read %s: %w", ref, err)
	}
	if err := v.verifySignature(ref.Context(), found.Digest, options); err != nil {
		return name.Digest{}, fmt.Errorf("image %s: %w", ref, err)
	}
	if err := validateContent(found); err != nil {
		return name.Digest{}, fmt.Errorf("image %s is not what was signed: %w", ref, err)
	}
	return ref.Context().Digest(found.Digest.String()), nil
}

// validateContent reads everything that a client would pull. A client of the registry
// compares each part with its digest while it is read.
func validateContent(found *remote.Descriptor) error {
	if !found.MediaType.IsIndex() {
		img, err := found.Image()
		if err != nil {
			return err //nolint:wrapcheck // the caller names the image
		}
		return readImage(img)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	for _, d := range manifest.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			return err //nolint:wrapcheck // the same
		}
		if err := readImage(img); err != nil {
			return err
		}
	}
	return nil
}

func readImage(img v1.Image) error {
	if _, err := img.RawConfigFile(); err != nil {
		return err //nolint:wrapcheck // the caller names the image
	}
	layers, err := img.Layers()
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return err //nolint:wrapcheck // the same
		}
		_, err = io.Copy(io.Discard, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (v Verifier) verifySignature(repository name.Repository, digest v1.Hash, options []remote.Option) error {
	img, err := remote.Image(signatureTag(repository, digest), options...)
	if err != nil {
		return fmt.Errorf("no signature: %w", err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("read its signatures: %w", err)
	}
	err = errors.New("no signature")
	for _, d := range manifest.Layers {
		if err = v.verifyLayer(img, d, digest); err == nil {
			return nil
		}
	}
	return err
}

// verifyLayer checks one signature, and that it is of this manifest.
func (v Verifier) verifyLayer(img v1.Image, d v1.Descriptor, digest v1.Hash) error {
	layer, err := img.LayerByDigest(d.Digest)
	if err != nil {
		return fmt.Errorf("read what was signed: %w", err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("read what was signed: %w", err)
	}
	text, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("read what was signed: %w", err)
	}
	if err := v.verify(text, d.Annotations[signatureAnnotation]); err != nil {
		return err
	}
	var of payload.Cosign
	if err := json.Unmarshal(text, &of); err != nil {
		return fmt.Errorf("read what was signed: %w", err)
	}
	if of.Image.DigestStr() != digest.String() {
		return fmt.Errorf("the signature is of %s", of.Image.DigestStr())
	}
	return nil
}
