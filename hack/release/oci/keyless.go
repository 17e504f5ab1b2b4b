package oci

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Keyless signs with cosign, by the identity of the workflow that runs it: there is no key to keep.
// Cosign has a certificate issued for the identity, and writes to the public transparency log.
type Keyless struct {
	// Cosign is the program.
	Cosign string
}

// Sign implements [Signing].
func (k Keyless) Sign(ctx context.Context, manifest name.Digest, _ ...remote.Option) error {
	said := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, k.Cosign, "sign", "--yes", manifest.String()) //nolint:gosec // the user names it
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s sign %s: %w: %s", k.Cosign, manifest, err, said)
	}
	return nil
}
