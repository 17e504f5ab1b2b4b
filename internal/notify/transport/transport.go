package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/outbound"
)

// The keys of a Secret.
const (
	keyAddress = "address"
	keyHMAC    = "hmac-key"
)

// quoted bounds what is quoted of a response, in bytes.
const quoted = 120

// The names of the transports, as metrics have them.
const (
	Webhook      = "webhook"
	Chat         = "chat"
	Alertmanager = "alertmanager"
)

// Name is the name of the transport of a Notifier.
func Name(s *v1alpha1.NotifierSpec) string {
	switch {
	case s.Chat != nil:
		return Chat
	case s.Alertmanager != nil:
		return Alertmanager
	default:
		return Webhook
	}
}

// Target is where the messages of a Notifier are sent.
type Target struct {
	spec   *v1alpha1.NotifierSpec
	url    *url.URL
	key    []byte
	creds  *outbound.Credentials
	client *http.Client
}

var errNoAddress = errors.New("has no valid address: set its key " + keyAddress + " to an http or https URL without user and password")

// To is the target of a Notifier of a namespace, in what the network reaches.
func To(network outbound.Network, namespace string, spec *v1alpha1.NotifierSpec, secret *corev1.Secret) (*Target, error) {
	u, err := outbound.ParseURL(strings.TrimSpace(string(secret.Data[keyAddress])))
	if err != nil {
		return nil, fmt.Errorf("the Secret %s %w", secret.Name, errNoAddress)
	}
	creds, err := outbound.CredentialsOf(secret)
	if err != nil {
		return nil, err
	}
	for _, part := range append(strings.Split(u.EscapedPath(), "/"), u.Host, u.Hostname(), u.EscapedPath(), u.RawQuery) {
		creds.Hide(part)
	}
	return &Target{
		spec: spec, url: u, creds: creds, key: bytes.TrimSpace(secret.Data[keyHMAC]),
		client: outbound.Client(network, namespace, u.Hostname(), creds),
	}, nil
}

// Send sends a message. Nil is that the receiver has it.
func (t *Target) Send(ctx context.Context, m *Message, now time.Time) *decision.Failure {
	var content any
	header, to := http.Header{}, t.url
	switch {
	case t.spec.Chat != nil:
		content = chat(t.spec.Chat.Format, m)
	case t.spec.Alertmanager != nil:
		content, to = alerts(m, now), t.url.JoinPath("api/v2/alerts")
	default:
		content = cloudEvent(m)
		header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	}
	body, err := encode(content)
	if err != nil {
		return &decision.Failure{Text: err.Error(), Rejected: true}
	}
	if t.spec.Webhook != nil && len(t.key) > 0 {
		header.Set(signatureHeader, signature(t.key, body, now))
	}
	_, failure := t.request(ctx, http.MethodPost, to, header, body)
	return failure
}

// encode writes JSON without the escapes that are for HTML, which chats show.
func encode(content any) ([]byte, error) {
	b := &bytes.Buffer{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(content); err != nil {
		return nil, fmt.Errorf("encode the message: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// request returns what the receiver answers.
func (t *Target) request(ctx context.Context, method string, to *url.URL, header http.Header, body []byte) ([]byte, *decision.Failure) {
	ctx, cancel := context.WithTimeout(ctx, outbound.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, t.failure(err)
	}
	req.Header = header
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := t.client.Do(req)
	if err != nil {
		return nil, t.failure(err)
	}
	defer func() { _ = res.Body.Close() }() // what it says was read
	said, err := io.ReadAll(res.Body)
	switch isAccepted := res.StatusCode < http.StatusMultipleChoices; {
	case isAccepted && (err == nil || method != http.MethodGet):
		return said, nil // it has the message, whatever it says
	case err != nil:
		return nil, t.failure(err)
	default:
		return nil, &decision.Failure{Text: t.creds.Redact(answer(res.StatusCode, said)), Rejected: isRejected(res.StatusCode)}
	}
}

func (t *Target) failure(err error) *decision.Failure {
	return &decision.Failure{Text: t.creds.Redact(outbound.Describe(err))}
}

// answer is what a receiver has answered.
func answer(status int, said []byte) string {
	text := strings.TrimSpace(string(said))
	if text == "" || !utf8.ValidString(text) {
		return fmt.Sprintf("status %d", status)
	}
	return fmt.Sprintf("status %d: %s", status, message.Cut(strings.Join(strings.Fields(text), " "), quoted))
}

// isRejected is true of a status that is about the message itself.
func isRejected(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}
