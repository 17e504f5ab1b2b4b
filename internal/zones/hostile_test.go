package zones_test

import (
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Values as long as annotations may be are quoted in part: the API server accepts the
// status, which says what is wrong and how to fix it.
func TestALongValueIsQuotedInPart(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("€", 60<<10)
	for i := range 12 {
		w.create(zone(fmt.Sprintf("zone-%c", 'a'+i), onDelete, replicas(0), annotated("rollout-max-unavailable", "1", "spillway.dev/rollout-max-unavailable", long)))
	}
	w.manage()
	w.waitsFor("Stalled", "must be a number of at least 1")
	s := w.group().Status
	c := apimeta.FindStatusCondition(s.Conditions, ring.ConditionStalled)
	if len(c.Message) > message.SentenceLength || !strings.Contains(s.WaitingFor, "(184320 bytes)") {
		t.Errorf("%d bytes: %s", len(c.Message), c.Message)
	}
}
