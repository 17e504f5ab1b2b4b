package content

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Moment is when an object was written: to the second, as the API server records it, and within that
// second by the version that the object has since.
type Moment struct {
	At      time.Time
	Version string
}

// EditedSince is true if some of these objects may have had another content at a moment, or not
// have existed. One without which no Pod starts, and that was not edited since it was created, has
// the content with which they started. Of what the secrets store driver has mounted it is
// not known when that was, and it does not count.
func (f Facts) EditedSince(uses []Use, m Moment) bool {
	return slices.ContainsFunc(uses, func(u Use) bool {
		of := f[u.Object]
		unedited := u.Required && of.written.Equal(of.created)
		return of.exists && !u.Ignored && !unedited && of.isWrittenAfter(m)
	})
}

func (f fact) isWrittenAfter(m Moment) bool {
	if at, moment := f.written.Truncate(time.Second), m.At.Truncate(time.Second); !at.Equal(moment) {
		return at.After(moment)
	}
	_, version, _ := strings.Cut(f.version, "/")
	order, err := resourceversion.CompareResourceVersion(version, m.Version)
	return err != nil || order > 0
}
