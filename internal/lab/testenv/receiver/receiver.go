// Package receiver receives what Notifiers send, for tests.
package receiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// Message is what is in the event of a webhook.
type Message struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Data    struct {
		Phase    string `json:"phase"`
		Reason   string `json:"reason"`
		Sentence string `json:"sentence"`
		Next     string `json:"next"`
		TraceID  string `json:"traceID"`
	} `json:"data"`
}

// Receiver answers webhooks, and remembers what it receives.
type Receiver struct {
	url string

	mu   sync.Mutex
	told []Message
}

// New starts a receiver.
func New(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var m Message
	if err := json.NewDecoder(request.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, m)
}

// Told are the messages so far.
func (r *Receiver) Told() []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// Said are the messages so far, each in a line: of what, and why.
func (r *Receiver) Said() []string {
	var said []string
	for _, m := range r.Told() {
		said = append(said, m.Data.Phase+" "+m.Subject+": "+m.Data.Sentence)
	}
	return said
}

// Heard is nil once a message begins like this.
func (r *Receiver) Heard(beginning string) error {
	said := r.Said()
	if !slices.ContainsFunc(said, func(m string) bool { return strings.HasPrefix(m, beginning) }) {
		return fmt.Errorf("told %q, and not %q", said, beginning)
	}
	return nil
}

// Name is that of the Notifier of a receiver.
const Name = "channel"

// Notifier is a Notifier that tells the receiver of all rollouts of a namespace, and its Secret.
func (r *Receiver) Notifier(namespace string) []client.Object {
	named := metav1.ObjectMeta{Namespace: namespace, Name: Name}
	return []client.Object{
		&corev1.Secret{ObjectMeta: named, StringData: map[string]string{"address": r.url}},
		&v1alpha1.Notifier{ObjectMeta: named, Spec: v1alpha1.NotifierSpec{
			Webhook: &v1alpha1.WebhookNotifier{}, SecretRef: v1alpha1.LocalSecretReference{Name: Name},
		}},
	}
}
