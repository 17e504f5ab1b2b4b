package simulate

import (
	"fmt"
	"regexp"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// moment matches what rollout.Clock writes.
var moment = regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]{2} \d\d:\d\d:\d\d UTC`)

// CountMoments replaces the moments in sentences by the time since the change, which was made at
// start. So two simulations of the same manifests say the same. A moment before the change stands
// in the manifests, and stays.
func (r *Result) CountMoments(start time.Time) {
	start = start.UTC().Truncate(time.Second)
	count := func(sentence *string) {
		*sentence = moment.ReplaceAllStringFunc(*sentence, func(text string) string { return sinceChange(start, text) })
	}
	for _, waits := range [][]record.Wait{r.Before, r.Waits, r.Stuck} {
		for i := range waits {
			count(&waits[i].Sentence)
		}
	}
	for i := range r.Risks {
		count(&r.Risks[i].Sentence)
		count(&r.Risks[i].Action)
	}
}

// sinceChange is a moment of this year or the next one as an offset from start.
func sinceChange(start time.Time, text string) string {
	for _, year := range []int{start.Year(), start.Year() + 1} {
		at, err := time.Parse("2006 2 Jan 15:04:05 UTC", fmt.Sprintf("%d %s", year, text))
		if err == nil && !at.Before(start) && at.Sub(start) < farthest {
			return record.Offset(at.Sub(start)).String()
		}
	}
	return text
}

// farthest is how far from the change a moment is at most that is counted: the text of one has no
// year.
const farthest = 300 * 24 * time.Hour
