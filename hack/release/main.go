// Command release makes a release of Spillway, pushes it, and verifies what was pushed.
//
// What it makes is a function of a commit, of Go and of this module: made twice, at
// different paths, it is equal byte for byte.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/hack/release/build"
	"github.com/spillway-dev/spillway/hack/release/chart"
	"github.com/spillway-dev/spillway/hack/release/oci"
	"github.com/spillway-dev/spillway/hack/release/program"
	"github.com/spillway-dev/spillway/hack/release/source"
)

// Where images and charts are. Helm wants the last part of a repository to be the name of
// the chart.
const (
	repository = "ghcr.io/spillway-dev/spillway"
	charts     = "ghcr.io/spillway-dev/charts/spillway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // this is the main
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "release", Short: "Make, push and verify releases", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newBuild(), newPush(), newVerify())
	return root
}

func newBuild() *cobra.Command {
	var (
		version, root     string
		o                 = build.Options{}
		platforms, images []string
	)
	cmd := &cobra.Command{
		Use: "build", Short: "Write everything of a release into a folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Platforms, err = program.ParsePlatforms(platforms); err != nil {
				return err
			}
			if o.Images, err = program.ParsePlatforms(images); err != nil {
				return err
			}
			if root, err = filepath.Abs(root); err != nil {
				return fmt.Errorf("folder of the repository: %w", err)
			}
			if o.Source, err = source.Read(cmd.Context(), root, version); err != nil {
				return err
			}
			o.Log = cmd.ErrOrStderr()
			return build.Run(cmd.Context(), o)
		},
	}
	all := make([]string, 0, len(program.Platforms()))
	for _, p := range program.Platforms() {
		all = append(all, p.String())
	}
	f := cmd.Flags()
	f.StringVar(&version, "version", "", "version of the release, such as v0.1.0")
	f.StringVar(&root, "root", ".", "folder of the repository")
	f.StringVar(&o.Out, "out", "dist", "folder to write to; what is in it is removed")
	f.StringVar(&o.Repository, "repository", repository, "repository of the image")
	f.StringSliceVar(&platforms, "platforms", all, "platforms of the archives")
	f.StringSliceVar(&images, "image-platforms", all[:2], "platforms of the image")
	f.BoolVar(&o.FIPS, "fips", true, "also make the variant of the image with cryptography that is certified by FIPS 140-3")
	return cmd
}

func newPush() *cobra.Command {
	var dist, to, chartsTo, key, cosign string
	cmd := &cobra.Command{
		Use: "push", Short: "Push the images and the chart of a release, and sign them", Args: cobra.NoArgs,
		Long: "Push the images and the chart of a release, what is attached to them, and a signature of each.\n" +
			"Tags are set last. The password of the key is that in COSIGN_PASSWORD; the registry's\n" +
			"credentials are those of docker login.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			signing, err := signingBy(key, cosign)
			if err != nil {
				return err
			}
			releases, err := oci.ReadLayout(filepath.Join(dist, build.Images))
			if err != nil {
				return err
			}
			packed, err := chart.ReadPackage(dist, chartsTo)
			if err != nil {
				return err
			}
			releases = append(releases, packed) // last, because it leads to the image
			digests, err := oci.Push(cmd.Context(), to, releases, signing, keychain())
			for _, digest := range digests {
				_, _ = fmt.Fprintln(cmd.OutOrStdout(), digest)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dist, "dist", "dist", "folder of the release")
	f.StringVar(&to, "to", repository, "repository to push the images to")
	f.StringVar(&chartsTo, "charts-to", charts, "repository to push the chart to; its last part must be spillway")
	f.StringVar(&key, "key", "cosign.key", "private key, as cosign generate-key-pair writes it")
	f.StringVar(&cosign, "keyless", "", "sign without a key, by the identity of the workflow that runs this: the program cosign")
	return cmd
}

// signingBy signs with cosign if it is named, and with a key otherwise.
func signingBy(key, cosign string) (oci.Signing, error) {
	if cosign != "" {
		return oci.Keyless{Cosign: cosign}, nil
	}
	raw, err := os.ReadFile(key) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	signer, err := oci.ParseKey(raw, []byte(os.Getenv("COSIGN_PASSWORD")))
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	return signer, nil
}

func newVerify() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "verify IMAGE", Short: "Verify that an image or a chart was signed, and that it is what was signed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := os.ReadFile(key) //nolint:gosec // the user names it
			if err != nil {
				return fmt.Errorf("--key: %w", err)
			}
			verifier, err := oci.ParsePublicKey(raw)
			if err != nil {
				return fmt.Errorf("--key: %w", err)
			}
			digest, err := verifier.Verify(cmd.Context(), args[0], keychain())
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "cosign.pub", "public key")
	return cmd
}

func keychain() remote.Option { return remote.WithAuthFromKeychain(authn.DefaultKeychain) }
