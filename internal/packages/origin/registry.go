package origin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/repository"
)

// The types of an artifact that is a package.
const (
	ArtifactType = "application/vnd.spillway.package.v1"
	LayerType    = "application/vnd.spillway.package.layer.v1.tar+gzip"
)

const (
	ociScheme = "oci://"
	// mostManifest bounds a manifest, in bytes.
	mostManifest = 1 << 20
	// registryPatience is how long all requests for one package may take.
	registryPatience = time.Minute
)

// fromRegistry reads a package from a registry. What is read has the digest that the
// manifest says, and the manifest that of the reference, if that has one.
func (o *Origin) fromRegistry(ctx context.Context, name string) (*packages.Package, error) {
	archive, name, err := o.pull(ctx, name)
	if err != nil {
		return nil, err
	}
	return packages.Read(name, bytes.NewReader(archive))
}

// pull reads the archive of an artifact, and returns its name with the digest.
func (o *Origin) pull(ctx context.Context, name string) (archive []byte, digested string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	repo, err := o.repository(name)
	if err != nil {
		return nil, "", err
	}
	manifest, raw, err := oras.FetchBytes(ctx, repo, repo.Reference.Reference, oras.FetchBytesOptions{MaxBytes: mostManifest})
	if err != nil {
		return nil, "", unavailable(ctx, name, err)
	}
	layer, err := archiveIn(manifest, raw)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	archive, err = content.FetchAll(ctx, repo.Blobs(), layer)
	if err != nil {
		return nil, "", unavailable(ctx, name, err)
	}
	if !strings.Contains(name, "@") {
		name += "@" + manifest.Digest.String()
	}
	return archive, name, nil
}

// archiveIn is the one layer that is an archive.
func archiveIn(manifest ocispec.Descriptor, raw []byte) (layer ocispec.Descriptor, _ error) {
	if manifest.MediaType != ocispec.MediaTypeImageManifest {
		return layer, fmt.Errorf("is no package: its manifest is of type %s, and must be of type %s", manifest.MediaType, ocispec.MediaTypeImageManifest)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return layer, fmt.Errorf("invalid manifest: %w", err)
	}
	found := 0
	for _, l := range m.Layers {
		if strings.HasSuffix(l.MediaType, "tar+gzip") || strings.HasSuffix(l.MediaType, "/gzip") || strings.HasSuffix(l.MediaType, "/x-tgz") {
			layer, found = l, found+1
		}
	}
	switch {
	case found != 1:
		return layer, fmt.Errorf("is no package: it has %d layers that are archives, want one; push it with: spillway package push DIR %sREGISTRY/NAME:TAG", found, ociScheme)
	case layer.Size > repository.MostDownload:
		return layer, fmt.Errorf("has more than %d MiB", repository.MostDownload>>20)
	default:
		return layer, nil
	}
}

// Push writes a package to a registry, and returns its digest. Of the same files it is
// the same.
func (o *Origin) Push(ctx context.Context, p *packages.Package, name string) (digest string, _ error) {
	repo, err := o.repository(name)
	if err != nil {
		return "", err
	}
	if strings.Contains(repo.Reference.Reference, ":") {
		return "", fmt.Errorf("%s: a package is pushed to a tag, not to a digest; use %sREGISTRY/NAME:TAG", name, ociScheme)
	}
	var archive bytes.Buffer
	if err := p.Archive(&archive); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	layer, err := oras.PushBytes(ctx, repo, LayerType, archive.Bytes())
	if err != nil {
		return "", unavailable(ctx, name, err)
	}
	manifest, err := oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, ArtifactType, oras.PackManifestOptions{
		Layers: []ocispec.Descriptor{layer},
		ManifestAnnotations: map[string]string{
			ocispec.AnnotationCreated: time.Unix(0, 0).UTC().Format(time.RFC3339), // a fixed one, for the digest
			ocispec.AnnotationTitle:   p.Operator.Name, ocispec.AnnotationVersion: p.Operator.OperatorVersion,
		},
	})
	if err == nil {
		err = repo.Tag(ctx, manifest, repo.Reference.Reference)
	}
	if err != nil {
		return "", unavailable(ctx, name, err)
	}
	return manifest.Digest.String(), nil
}

// unavailable says why a registry does not give or take an artifact.
func unavailable(ctx context.Context, name string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: the registry did not answer within %s; check the network", name, registryPatience)
	}
	return repository.Unreachable(ctx, name, err)
}

// repository is the one of a reference, with the credentials of Docker's configuration.
func (o *Origin) repository(name string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(name, ociScheme))
	if err == nil && repo.Reference.Reference == "" {
		err = errors.New("it has no tag and no digest")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no reference of an artifact: %w; use %sREGISTRY/NAME:TAG or %sREGISTRY/NAME@sha256:DIGEST", name, err, ociScheme, ociScheme)
	}
	repo.PlainHTTP = o.PlainHTTP || isLoopback(repo.Reference)
	client := &auth.Client{Client: &http.Client{CheckRedirect: repository.StaysSafe}, Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil { // without it, what is public can be read
		client.Credential = credentials.Credential(store)
	}
	client.SetUserAgent("spillway")
	repo.Client = client
	return repo, nil
}

func isLoopback(r registry.Reference) bool {
	host := r.Host()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
