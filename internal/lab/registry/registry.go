// Package registry is a registry of OCI artifacts in memory, for tests: what the
// distribution specification says of pushing and pulling, and nothing else.
package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Registry is a registry. Its zero value is empty.
type Registry struct {
	mu   sync.Mutex
	kept map[string]stored
}

// stored is a blob or a manifest.
type stored struct {
	digest, mediaType string
	content           []byte
}

// Replace changes what is stored under a digest or a tag of a repository, without
// changing its digest, as a registry does that lies.
func (r *Registry) Replace(change func(content []byte) []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.kept {
		s.content = change(s.content)
		r.kept[key] = s
	}
}

// ServeHTTP implements [http.Handler].
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.URL.Path == "/v2/":
	case q.Method == http.MethodPost: // the upload of a blob begins
		w.Header().Set("Location", strings.TrimSuffix(q.URL.Path, "/")+"/1")
		w.WriteHeader(http.StatusAccepted)
	case q.Method == http.MethodPut:
		r.put(w, q)
	default:
		r.get(w, q)
	}
}

func (r *Registry) put(w http.ResponseWriter, q *http.Request) {
	content, err := io.ReadAll(q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256(content)
	s := stored{digest: "sha256:" + hex.EncodeToString(sum[:]), mediaType: q.Header.Get("Content-Type"), content: content}
	if r.kept == nil {
		r.kept = map[string]stored{}
	}
	repository, reference, isManifest := strings.Cut(q.URL.Path, "/manifests/")
	if isManifest {
		r.kept[repository+"/manifests/"+reference] = s
		r.kept[repository+"/manifests/"+s.digest] = s
	} else {
		repository, _, _ = strings.Cut(q.URL.Path, "/blobs/")
		r.kept[repository+"/blobs/"+s.digest] = s
	}
	w.Header().Set("Docker-Content-Digest", s.digest)
	w.WriteHeader(http.StatusCreated)
}

func (r *Registry) get(w http.ResponseWriter, q *http.Request) {
	s, ok := r.kept[q.URL.Path]
	if !ok {
		http.NotFound(w, q)
		return
	}
	w.Header().Set("Content-Type", s.mediaType)
	w.Header().Set("Docker-Content-Digest", s.digest)
	w.Header().Set("Content-Length", strconv.Itoa(len(s.content)))
	if q.Method == http.MethodGet {
		_, _ = w.Write(s.content)
	}
}
