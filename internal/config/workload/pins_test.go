package workload

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A request to try again is dated up to a second ahead. What has answered it is not rolled
// forward for it when a user goes back within that second.
func TestWhatIsRecordedAnswersARetryThatIsDatedAhead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.May, 4, 12, 0, 0, 300_000_000, time.UTC)
	for ahead, answers := range map[time.Duration]bool{-time.Second: true, 700 * time.Millisecond: true, time.Hour: false} {
		db := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{
			vocabulary.RetryConfig.Native: now.Add(ahead).Format(time.RFC3339),
		}}}
		db.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		w := &Workload{Config: content.FactsOf(db)}
		w.Namespace, w.Hashes, w.Template.Hash = "shop", &content.Hashes{Desired: "present"}, "earlier"
		w.Pinning.Pins = pin.Pins{{Kind: content.Secret, Name: "db", Digest: "0123456789"}}
		w.Pinning.References = []pin.Reference{{Kind: content.Secret, Name: "db"}}
		answered, ok := w.AnswersNow(now)
		if w.Records.Answered = answered; !ok || w.IsUndone() != answers {
			t.Errorf("dated %s ahead: recorded is %t, undone is %t, want %t", ahead, ok, w.IsUndone(), answers)
		}
	}
}
