package outcome_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
)

// A cluster is asked whether it answers while a sync is updating there, and no more often than
// that is worth: after five seconds, later after a twelfth of the time that it takes.
func TestWhenAClusterIsAskedAgain(t *testing.T) {
	now := time.Unix(100000, 0)
	sync := func(state v1alpha1.State, ago time.Duration) v1alpha1.SyncStatus {
		return v1alpha1.SyncStatus{State: state, LastTransitionTime: new(metav1.NewMicroTime(now.Add(-ago)))}
	}
	for name, test := range map[string]struct {
		syncs []v1alpha1.SyncStatus
		want  time.Duration
	}{
		"it has just begun":          {[]v1alpha1.SyncStatus{sync(v1alpha1.StateUpdating, 0)}, 5 * time.Second},
		"within a minute":            {[]v1alpha1.SyncStatus{sync(v1alpha1.StateUpdating, time.Minute)}, 5 * time.Second},
		"after ten minutes":          {[]v1alpha1.SyncStatus{sync(v1alpha1.StateUpdating, 10*time.Minute)}, 50 * time.Second},
		"the youngest counts":        {[]v1alpha1.SyncStatus{sync(v1alpha1.StateUpdating, time.Hour), sync(v1alpha1.StateUpdating, 10*time.Minute)}, 50 * time.Second},
		"a clock that was ahead":     {[]v1alpha1.SyncStatus{sync(v1alpha1.StateUpdating, -time.Hour)}, 5 * time.Second},
		"what waits is not updating": {[]v1alpha1.SyncStatus{sync(v1alpha1.StateWaiting, 0), sync(v1alpha1.StateFailed, 0), sync(v1alpha1.StateUnreachable, 0)}, 0},
		"what has succeeded":         {[]v1alpha1.SyncStatus{sync(v1alpha1.StateSucceeded, 0)}, 0},
		"since an unknown time":      {[]v1alpha1.SyncStatus{{State: v1alpha1.StateUpdating}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want := time.Time{}
			if test.want != 0 {
				want = now.Add(test.want)
			}
			if got := outcome.NextAsk(&v1alpha1.AssemblageStatus{Syncs: test.syncs}, now); !got.Equal(want) {
				t.Errorf("after %s", got.Sub(now))
			}
		})
	}
}
