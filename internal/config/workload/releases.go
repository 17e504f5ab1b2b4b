package workload

import (
	"slices"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// ReleasesOf are the present releases that a change of these keys consists of, as far as the
// workload uses the keys. The keys are as a record names them; if they are not known, or
// not all are, they are all that the workload uses, up to a bound: each is compared with the
// failures of others.
func (w *Workload) ReleasesOf(keys []string) []content.Release {
	all := len(keys) == 0 || keys[len(keys)-1] == More
	var releases []content.Release
	for i := range w.Uses {
		use := &w.Uses[i]
		if use.Ignored || !all && !use.IsAmong(w.Namespace, keys) {
			continue
		}
		r, ok := w.Config.Release(use.Object)
		if ok && !slices.Contains(releases, r) {
			releases = append(releases, r)
		}
		if len(releases) == mostReleases {
			break
		}
	}
	if len(releases) == 0 && !all { // it is none of these keys
		return w.ReleasesOf(nil)
	}
	return releases
}

// mostReleases is more than what a user changes at a time for one workload.
const mostReleases = 64

// More ends a list of keys that is not complete.
const More = "…"
