package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// signatureHeader has the signature of a request to a webhook.
const signatureHeader = "Spillway-Signature"

// event is a CloudEvent 1.0 in structured JSON mode.
type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            string    `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

// eventData is what a receiver may show or filter by.
type eventData struct {
	Ring      string `json:"ring"`
	Phase     string `json:"phase"`
	Severity  string `json:"severity"`
	Reason    string `json:"reason"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Rollout   string `json:"rollout"`
	Headline  string `json:"headline"`
	Sentence  string `json:"sentence,omitempty"`
	Next      string `json:"next"`
	TraceID   string `json:"traceID,omitempty"`
}

func cloudEvent(m *Message) event {
	return event{
		SpecVersion: "1.0", ID: m.ID, Source: "/spillway.dev/namespaces/" + m.Namespace, Type: "dev.spillway.rollout." + strings.ToLower(string(m.Phase)),
		Subject: m.Kind + "/" + m.Name, Time: m.at(), DataContentType: "application/json",
		Data: eventData{
			Ring: m.Ring, Phase: string(m.Phase), Severity: m.Severity, Reason: m.Reason, Namespace: m.Namespace, Kind: m.Kind, Name: m.Name,
			Rollout: m.Rollout, Headline: m.Headline(), Sentence: m.Sentence, Next: m.Next(), TraceID: m.TraceID,
		},
	}
}

// signature signs a body and the time, so that a receiver can refuse what was recorded before.
func signature(key, body []byte, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(append([]byte(at+"."), body...)) // a hash never fails
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
