package reloader

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Selected are the namespaces whose annotations count, by their labels. None do until they are known.
type Selected struct {
	Selector labels.Selector

	mu    sync.RWMutex
	since map[string]time.Time
	// all is true if all count.
	all bool
}

// ObserveAll has all namespaces count, for a reader who must not read their labels: what the manager has recorded says
// which do.
func (s *Selected) ObserveAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// Observe says which namespaces exist, and their labels. Those that are selected the first time were before.
func (s *Selected) Observe(now time.Time, namespaces map[string]labels.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil {
		now = time.Time{}
	}
	since := map[string]time.Time{}
	for name, of := range namespaces {
		if before, known := s.since[name]; s.Selector.Matches(of) && known {
			since[name] = before
		} else if s.Selector.Matches(of) {
			since[name] = now
		}
	}
	s.since = since
}

// Learn is Observe for one namespace, for a watch that may be earlier.
func (s *Selected) Learn(now time.Time, namespace string, of labels.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := maps.Clone(s.since)
	if since == nil {
		since = map[string]time.Time{}
	}
	if _, known := since[namespace]; !s.Selector.Matches(of) {
		delete(since, namespace)
	} else if !known {
		since[namespace] = now
	}
	s.since = since
}

// lookup returns since when a namespace is selected.
func (s *Selected) lookup(namespace string) (since time.Time, selected bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	since, selected = s.since[namespace]
	return since, selected || s.all
}
