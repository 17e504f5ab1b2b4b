package dashboard

import (
	"sync"
	"time"
)

// rendered keeps the pages that were rendered of one version, so that many windows that hear of
// a change at the same time cost one page. They say how long ago things were, and are kept for the
// second in which that is right.
type rendered struct {
	mu      sync.Mutex
	version int
	second  time.Time
	pages   map[string][]byte
}

// page renders a page at a time, unless that was done in the same second.
func (r *rendered) page(place string, now time.Time, v *view) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := now.Truncate(time.Second)
	if r.version != v.version || !r.second.Equal(second) {
		r.version, r.second, r.pages = v.version, second, map[string][]byte{}
	}
	if page, ok := r.pages[v.shared]; ok {
		return page, nil
	}
	page, err := render(place, second, v)
	if err == nil {
		r.pages[v.shared] = page
	}
	return page, err
}
