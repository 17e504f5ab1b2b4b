package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Notifier sends a message when a rollout of its namespace starts, stops, ends, or is returned
// to what was before. It never sends one for a Pod.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={spillway}
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name=Pending,type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name=Last-Delivery,type=date,JSONPath=`.status.lastDelivery.at`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Notifier struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where messages are sent, and which.
	Spec NotifierSpec `json:"spec"`
	// Status is what was sent, and what is pending.
	// +optional
	Status NotifierStatus `json:"status,omitempty"`
}

// NotifierList is a list of Notifiers.
//
// +kubebuilder:object:root=true
type NotifierList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Notifier `json:"items"`
}

// NotifierSpec says where messages are sent, and which.
//
// +kubebuilder:validation:XValidation:rule="[has(self.webhook), has(self.chat), has(self.alertmanager)].filter(x, x).size() == 1",message="set exactly one of webhook, chat and alertmanager"
type NotifierSpec struct {
	// Webhook sends CloudEvents.
	// +optional
	Webhook *WebhookNotifier `json:"webhook,omitempty"`
	// Chat sends messages to a channel, through its incoming webhook.
	// +optional
	Chat *ChatNotifier `json:"chat,omitempty"`
	// Alertmanager sends alerts.
	// +optional
	Alertmanager *AlertmanagerNotifier `json:"alertmanager,omitempty"`

	// SecretRef is the Secret with the address, an http or https URL in the key address, and
	// with what the receiver asks for: keys token, or username and password; hmac-key;
	// ca.crt; tls.crt and tls.key.
	SecretRef LocalSecretReference `json:"secretRef"`
	// Filter is a CEL expression that is true of the messages to send. Its variables are
	// strings: ring (config, zones, plans, fleet), phase (Started, Stopped, Ended, Returned),
	// reason, severity (info, warning, error), object.kind, object.name and
	// object.namespace. Default: all messages.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Filter string `json:"filter,omitempty"`
	// Suspend sends nothing until it is removed. Messages about what happens until then are
	// not sent later.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// WebhookNotifier sends each message as a CloudEvent 1.0 in structured JSON mode. If the
// Secret has the key hmac-key, the header Spillway-Signature signs the body and the time:
// "t=TIME,v1=SIGNATURE", with the HMAC-SHA256 of "TIME.BODY" in hexadecimal digits.
type WebhookNotifier struct{}

// ChatNotifier sends messages to a channel.
type ChatNotifier struct {
	// Format is that of the incoming webhook: Slack, Teams (an adaptive card) or Discord.
	// +kubebuilder:validation:Enum=Slack;Teams;Discord
	Format ChatFormat `json:"format"`
}

// ChatFormat is the format of the messages of a chat.
type ChatFormat string

// The formats.
const (
	ChatSlack   ChatFormat = "Slack"
	ChatTeams   ChatFormat = "Teams"
	ChatDiscord ChatFormat = "Discord"
)

// AlertmanagerNotifier sends alerts to the API v2 of an Alertmanager: SpillwayRolloutStopped
// while a rollout is stopped, and SpillwayRolloutReturned when one was returned. It sends
// nothing when a rollout starts or ends.
type AlertmanagerNotifier struct {
	// Silence silences alerts about the Pods of a zone, and about its StatefulSet, while a
	// RolloutGroup takes the zone down on purpose and the rollout is not stopped. The silences
	// have the labels namespace and pod, or namespace and statefulset; they are renewed each
	// minute, and lapse within three.
	// +optional
	Silence bool `json:"silence,omitempty"`
}

// NotifierStatus is what was sent, and what is pending. What was reported is recorded before it
// is sent, so that a restart repeats a message at most, and with the same identity.
type NotifierStatus struct {
	// ObservedGeneration is the generation of the Notifier that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Pending is how many messages are not delivered yet.
	// +optional
	Pending int32 `json:"pending"`
	// Dropped is how many messages were not delivered and are not sent again: the queue
	// was full, or the receiver rejected them several times.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
	// LastDelivery is the last message that was delivered.
	// +optional
	LastDelivery *NotifierDelivery `json:"lastDelivery,omitempty"`
	// LastError is why the last attempt failed, without credentials. Absent once an
	// attempt succeeds.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LastError string `json:"lastError,omitempty"`
	// Attempts is how often the first message of the queue was sent in vain, RetryAt when it
	// is sent again.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// +optional
	RetryAt *metav1.MicroTime `json:"retryAt,omitempty"`
	// Queue are the messages that are not delivered yet, the oldest first.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Queue []NotifierMessage `json:"queue,omitempty"`
	// Silenced are the StatefulSets about which alerts are silenced.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Silenced []string `json:"silenced,omitempty"`
	// Told has the last rollout of each object, and what was reported of it.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=512
	Told []ToldRollout `json:"told,omitempty"`
}

// NotifierDelivery is a message that was delivered.
type NotifierDelivery struct {
	// At is when.
	At metav1.MicroTime `json:"at"`
	// ID is that of the message.
	ID string `json:"id"`
}

// NotifierPhase is what a message is about.
// +kubebuilder:validation:Enum=Started;Stopped;Resumed;Ended;Returned
type NotifierPhase string

// The phases of a rollout that are reported.
const (
	// RolloutStarted: the first unit is updated.
	RolloutStarted NotifierPhase = "Started"
	// RolloutStopped: it does not continue until a user acts.
	RolloutStopped NotifierPhase = "Stopped"
	// RolloutResumed: it is not stopped any more. This resolves an alert, and is no message.
	RolloutResumed NotifierPhase = "Resumed"
	// RolloutEnded: it is complete, or nothing more is done for it.
	RolloutEnded NotifierPhase = "Ended"
	// RolloutReturned: it has failed, and what was before is rolled out again.
	RolloutReturned NotifierPhase = "Returned"
)

// NotifierMessage is a message that is not delivered yet.
type NotifierMessage struct {
	// ID identifies the message. One that is sent again has the same.
	// +kubebuilder:validation:MaxLength=512
	ID string `json:"id"`
	// Phase is what it is about.
	Phase NotifierPhase `json:"phase"`
	// Ring is config, zones, plans or fleet.
	Ring string `json:"ring"`
	// Kind and Name are those of the object that rolls out.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Rollout says which rollout of the object it is.
	Rollout string `json:"rollout"`
	// Reason is the reason in the status of the object, or how the rollout ended.
	Reason string `json:"reason"`
	// Severity is info, warning or error.
	Severity string `json:"severity"`
	// Sentence is why, as the status of the object says.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Sentence string `json:"sentence,omitempty"`
	// At is when that was so.
	At metav1.MicroTime `json:"at"`
	// TraceID is the id of the trace of the rollout, absent if no traces are written.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TraceID string `json:"traceID,omitempty"`
}

// ToldRollout is the last rollout of an object, and what was reported of it.
type ToldRollout struct {
	// Key identifies the object: its kind and UID, and for config the release.
	// +kubebuilder:validation:MaxLength=512
	Key string `json:"key"`
	// Name is that of the object.
	Name string `json:"name"`
	// Rollout and StartedAt identify the rollout.
	Rollout   string           `json:"rollout"`
	StartedAt metav1.MicroTime `json:"startedAt"`
	// Phase is what was reported last, Started again once it is not stopped any more.
	Phase NotifierPhase `json:"phase"`
	// Outcome is how it ended.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// Tries is how often it began again after it had ended, Stops how often it was stopped.
	// +optional
	Tries int32 `json:"tries,omitempty"`
	// +optional
	Stops int32 `json:"stops,omitempty"`
	// TraceID is the id of its trace, absent if no traces are written.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TraceID string `json:"traceID,omitempty"`
}
