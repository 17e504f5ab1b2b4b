package flux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sourceKinds are the kinds that are played.
var sourceKinds = []schema.GroupVersionKind{
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "Bucket"},
	chartKind,
}

// chartKind is made of another source, a HelmRepository or GitRepository. Of a HelmRepository the version of
// a chart is published as CHART:VERSION, with the folder CHART.
var chartKind = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "HelmChart"}

// Sources plays source-controller for any number of clusters, with what was
// published to it. It is safe for concurrent use.
type Sources struct {
	server *http.Server
	base   string

	mu        sync.Mutex
	published map[reference]artifact
	archives  map[string][]byte
	players   []*player
}

// buckets is what the URLs begin with under which a prefix of a bucket is published: ENDPOINT/BUCKET.
const buckets = "s3://"

// reference is what a source asks for.
type reference struct{ url, version string }

// artifact is what is to be had.
type artifact struct {
	revision, digest, path string
	size                   int64
	files                  map[string]string
}

// Serve serves on loopback until Close.
func Serve() (*Sources, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve artifacts: %w", err)
	}
	s := &Sources{base: "http://" + listener.Addr().String() + "/", published: map[reference]artifact{}, archives: map[string][]byte{}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(listener) }() // it ends with Close
	return s, nil
}

// Close ends the service.
func (s *Sources) Close() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("end the service of artifacts: %w", err)
	}
	return nil
}

// ServeHTTP implements [http.Handler]: artifacts by their path.
func (s *Sources) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	archive, ok := s.archives[strings.TrimPrefix(r.URL.Path, "/")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(archive) // a client that has disconnected asks again
}

// Publish has a version (a tag, a commit, or a digest) of a repository consist of
// these files, given by path, and returns its revision in Flux's words. A tag that
// is published once more moves. What it stood for stays, as a commit or a digest.
func (s *Sources) Publish(ctx context.Context, url, version string, files map[string]string) (revision string, err error) {
	archive, err := pack(files)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(archive)
	a := artifact{revision: revisionOf(url, version, archive), digest: "sha256:" + hex.EncodeToString(sum[:]), path: hex.EncodeToString(sum[:]) + ".tar.gz", size: int64(len(archive)), files: maps.Clone(files)}
	s.mu.Lock()
	s.published[reference{url, version}] = a
	if exact := exactly(url, a); exact.version != version {
		a.revision = revisionOf(url, exact.version, archive)
		s.published[exact] = a
	}
	s.archives[a.path] = archive
	players := slices.Clone(s.players)
	s.mu.Unlock()
	for _, p := range players {
		if err := p.again(ctx); err != nil {
			return "", err
		}
	}
	return revisionOf(url, version, archive), nil
}

// exactly is the commit, or the digest, that an artifact is.
func exactly(url string, a artifact) reference {
	digest := a.revision[strings.LastIndex(a.revision, "@")+1:]
	if strings.HasPrefix(url, "oci://") {
		return reference{url, digest}
	}
	return reference{url, strings.TrimPrefix(digest, "sha1:")}
}

// revisionOf names a revision as source-controller does.
func revisionOf(url, version string, archive []byte) string {
	isOCI := strings.HasPrefix(url, "oci://")
	commit := sha1.Sum(archive)
	content := sha256.Sum256(archive)
	switch {
	case strings.HasPrefix(url, buckets):
		return "sha256:" + hex.EncodeToString(content[:])
	case isOCI && strings.HasPrefix(version, "sha256:"):
		return version
	case isOCI:
		return version + "@sha256:" + hex.EncodeToString(content[:])
	case len(version) == 40:
		return "sha1:" + version
	default:
		return version + "@sha1:" + hex.EncodeToString(commit[:])
	}
}

// pack packs files as a tar.gz that is the same for the same files.
func pack(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: path, Mode: 0o644, Size: int64(len(files[path])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", path, err)
		}
		if _, err := archive.Write([]byte(files[path])); err != nil {
			return nil, fmt.Errorf("pack %s: %w", path, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}

// Play answers the sources of a cluster until the context ends.
func (s *Sources) Play(ctx context.Context, config *rest.Config) error {
	p := &player{sources: s}
	var err error
	if p.client, err = client.New(config, client.Options{}); err != nil {
		return fmt.Errorf("play source-controller: %w", err)
	}
	if p.cache, err = cache.New(config, cache.Options{}); err != nil {
		return fmt.Errorf("play source-controller: %w", err)
	}
	for _, kind := range sourceKinds {
		if err := p.watch(ctx, kind); err != nil {
			return err
		}
	}
	go func() { _ = p.cache.Start(ctx) }() // it ends with the context
	s.mu.Lock()
	defer s.mu.Unlock()
	s.players = append(s.players, p)
	return nil
}

// player plays for one cluster.
type player struct {
	sources *Sources
	client  client.Client
	cache   cache.Cache
}

func (p *player) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	informer, err := p.cache.GetInformer(ctx, u, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	see := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			_ = p.answer(ctx, u) // what was changed meanwhile is seen again
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	return nil
}

// again answers all sources once more.
func (p *player) again(ctx context.Context) error {
	for _, kind := range sourceKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.client.List(ctx, list); err != nil {
			continue // an API server that is stopped asks again when it is back
		}
		for i := range list.Items {
			if err := p.answer(ctx, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer writes the status of a source, unless it says already what it should.
func (p *player) answer(ctx context.Context, u *unstructured.Unstructured) error {
	var from *unstructured.Unstructured
	if u.GroupVersionKind() == chartKind {
		var err error
		if from, err = p.madeOf(ctx, u); err != nil {
			return err
		}
	}
	status := p.sources.status(u, from)
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	revision, _, _ := unstructured.NestedString(u.Object, "status", "artifact", "revision")
	if observed == u.GetGeneration() && revision == status.revision {
		return nil
	}
	answered := u.DeepCopy()
	answered.Object["status"] = status.content
	err := p.client.Status().Patch(ctx, answered, client.MergeFrom(u), fieldOwner)
	return client.IgnoreNotFound(err) //nolint:wrapcheck // the caller tries again
}

// madeOf is the source of a HelmChart, empty if it does not exist.
func (p *player) madeOf(ctx context.Context, chart *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from, _, _ := unstructured.NestedStringMap(chart.Object, "spec", "sourceRef")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(chartKind.GroupVersion().WithKind(from["kind"]))
	err := p.client.Get(ctx, client.ObjectKey{Namespace: chart.GetNamespace(), Name: from["name"]}, u)
	return u, client.IgnoreNotFound(err) //nolint:wrapcheck // the caller tries again
}

// status is what a source is answered.
type status struct {
	revision string
	content  map[string]any
}

// status is what is answered to a source; from is what a HelmChart is made of.
func (s *Sources) status(u, from *unstructured.Unstructured) status {
	now := time.Now().UTC().Format(time.RFC3339)
	ready := map[string]any{"type": "Ready", "observedGeneration": u.GetGeneration(), "lastTransitionTime": now}
	content := map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{ready}}
	wanted := referenceOf(u, from)
	s.mu.Lock()
	a, ok := s.published[wanted]
	s.mu.Unlock()
	if ok && from != nil {
		content["observedSourceArtifactRevision"] = a.revision
		a, ok = s.chart(a, u, from)
	}
	if !ok {
		maps.Copy(ready, map[string]any{"status": "False", "reason": "GitOperationFailed", "message": fmt.Sprintf("%s has no %q", wanted.url, wanted.version)})
		return status{content: content}
	}
	maps.Copy(ready, map[string]any{"status": "True", "reason": "Succeeded", "message": "stored artifact for revision " + a.revision})
	content["artifact"] = map[string]any{
		"revision": a.revision, "digest": a.digest, "path": a.path, "url": s.base + a.path, "lastUpdateTime": now, "size": a.size,
	}
	return status{a.revision, content}
}

// chart packs a chart of what was published, as source-controller does: that of a Git repository has
// the commit in its version.
func (s *Sources) chart(of artifact, u, from *unstructured.Unstructured) (artifact, bool) {
	folder, _, _ := unstructured.NestedString(u.Object, "spec", "chart")
	prefix, files := strings.Trim(folder, "./")+"/", map[string]string{}
	for path, text := range of.files {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			files[prefix[strings.LastIndex(prefix[:len(prefix)-1], "/")+1:]+rest] = text
		}
	}
	version := ""
	for path, text := range files {
		if _, after, ok := strings.Cut(text, "\nversion: "); ok && strings.HasSuffix(path, "/Chart.yaml") {
			plain, _, _ := strings.Cut(after, "\n")
			if version = plain; from.GetKind() != "HelmRepository" {
				version += "+" + of.revision[strings.LastIndex(of.revision, ":")+1:][:12]
			}
			files[path] = strings.Replace(text, "\nversion: "+plain, "\nversion: "+version, 1)
		}
	}
	archive, err := pack(files)
	if err != nil || version == "" {
		return artifact{}, false
	}
	sum := sha256.Sum256(archive)
	a := artifact{revision: version, digest: "sha256:" + hex.EncodeToString(sum[:]), path: hex.EncodeToString(sum[:]) + ".tar.gz", size: int64(len(archive))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archives[a.path] = archive
	return a, true
}

// referenceOf is what a source asks for: the most exact that it says. A HelmChart asks for a version of
// a chart, or for what the Git repository is at that it is made of.
func referenceOf(u, from *unstructured.Unstructured) reference {
	if from != nil && from.GetKind() == "HelmRepository" {
		url, _, _ := unstructured.NestedString(from.Object, "spec", "url")
		chart, _, _ := unstructured.NestedString(u.Object, "spec", "chart")
		version, _, _ := unstructured.NestedString(u.Object, "spec", "version")
		return reference{url, chart + ":" + version}
	}
	if from != nil {
		u = from
	}
	if bucket, isBucket, _ := unstructured.NestedString(u.Object, "spec", "bucketName"); isBucket {
		endpoint, _, _ := unstructured.NestedString(u.Object, "spec", "endpoint")
		prefix, _, _ := unstructured.NestedString(u.Object, "spec", "prefix")
		return reference{buckets + endpoint + "/" + bucket, prefix}
	}
	url, _, _ := unstructured.NestedString(u.Object, "spec", "url")
	for _, field := range []string{"commit", "digest", "semver", "tag", "branch"} {
		if version, _, _ := unstructured.NestedString(u.Object, "spec", "ref", field); version != "" {
			return reference{url, version}
		}
	}
	return reference{url: url}
}
