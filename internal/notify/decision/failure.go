package decision

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
)

const (
	// errorLength bounds the last error, in bytes. The kind has the same limit.
	errorLength = 512
	// mostRejections is how often a message is sent that the receiver rejects.
	mostRejections = 5
)

// Backoff is how long to wait before a message is sent again.
func Backoff() ring.Backoff { return ring.Backoff{First: time.Second, Most: 5 * time.Minute} }

// Failure is why a message was not delivered.
type Failure struct {
	// Text is the error, without credentials.
	Text string
	// Rejected is true if the receiver does not accept this message, and may accept others.
	Rejected bool
}

// failed is the status after a failure of the first message in the queue. One that is rejected
// again and again is dropped, so that it does not hold up the others.
func failed(s v1alpha1.NotifierStatus, f *Failure, now time.Time) v1alpha1.NotifierStatus {
	retry := metav1.NewMicroTime(now.Add(Backoff().After(int(s.Attempts))).Truncate(time.Microsecond))
	s.LastError, s.RetryAt = message.Cut(f.Text, errorLength), &retry
	s.Attempts++
	if f.Rejected && s.Attempts >= mostRejections && len(s.Queue) > 0 {
		s.Queue, s.Dropped, s.Attempts, s.RetryAt = s.Queue[1:], s.Dropped+1, 0, nil
	}
	return s
}
