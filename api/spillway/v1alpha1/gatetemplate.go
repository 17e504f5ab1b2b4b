package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GateTemplate says how the RolloutGates of its name are decided in its namespace. A
// gate without a GateTemplate is decided by a user or another program.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={spillway}
// +kubebuilder:printcolumn:name=Interval,type=string,JSONPath=`.spec.interval`
// +kubebuilder:printcolumn:name=Count,type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name=DryRun,type=boolean,JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type GateTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how gates are decided.
	Spec GateTemplateSpec `json:"spec"`
}

// GateTemplateList is a list of GateTemplates.
//
// +kubebuilder:object:root=true
type GateTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GateTemplate `json:"items"`
}

// GateTemplateSpec says how gates are decided.
//
// +kubebuilder:validation:XValidation:rule="[has(self.manual), has(self.http), has(self.prometheus), has(self.job)].filter(x, x).size() == 1",message="set exactly one of manual, http, prometheus and job"
// +kubebuilder:validation:XValidation:rule="!has(self.manual) || !(has(self.interval) || has(self.count) || has(self.initialDelay) || has(self.failureLimit) || has(self.consecutiveSuccessLimit) || has(self.errorLimit) || has(self.noData) || has(self.timeout) || has(self.dryRun) || has(self.secretRef))",message="manual measures nothing: set no other field with it"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || has(self.http) || has(self.prometheus)",message="secretRef is for http and prometheus"
// +kubebuilder:validation:XValidation:rule="!has(self.noData) || !has(self.job)",message="noData is for http and prometheus: a Job succeeds or fails"
// +kubebuilder:validation:XValidation:rule="!has(self.count) || !has(self.consecutiveSuccessLimit) || self.consecutiveSuccessLimit <= self.count",message="consecutiveSuccessLimit must be at most count, or the gate can never pass"
// +kubebuilder:validation:XValidation:rule="!has(self.failureLimit) || !has(self.count) || self.failureLimit < self.count",message="failureLimit must be lower than count, or the gate can never be refused"
type GateTemplateSpec struct {
	// Manual leaves the decision to a user or another program.
	// +optional
	Manual *ManualGate `json:"manual,omitempty"`
	// HTTP sends a request, and reads the response.
	// +optional
	HTTP *HTTPGate `json:"http,omitempty"`
	// Prometheus evaluates a PromQL query.
	// +optional
	Prometheus *PrometheusGate `json:"prometheus,omitempty"`
	// Job runs a Job. It succeeds if the Job does.
	// +optional
	Job *JobGate `json:"job,omitempty"`

	// SecretRef is the Secret with the credentials and certificates for http and
	// prometheus: keys token, or username and password; ca.crt; tls.crt and tls.key. The
	// Secret must allow the host, by the annotation spillway.dev/gate-hosts.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Interval is the time between two measurements, at least 5s. Default 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="must be at least 5s"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// InitialDelay is the time from the moment at which the rollout reaches the gate to
	// the first measurement. Default 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	InitialDelay *metav1.Duration `json:"initialDelay,omitempty"`
	// Count is how many measurements there are; those that fail count, errors and
	// missing data do not. The gate passes at the end. Default 1; with
	// consecutiveSuccessLimit, no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`
	// FailureLimit is how many measurements may fail. With one more the gate is
	// refused. Default 0; with consecutiveSuccessLimit, no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailureLimit *int32 `json:"failureLimit,omitempty"`
	// ConsecutiveSuccessLimit is how many measurements must succeed in a row. The gate
	// then passes immediately. If it has not passed after count measurements, it is
	// refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ConsecutiveSuccessLimit *int32 `json:"consecutiveSuccessLimit,omitempty"`
	// ErrorLimit is how many measurements in a row may end with an error: the source is
	// unreachable, answers with an error, or what it answers cannot be evaluated. With
	// one more the gate is refused. An error is no failure. Default 4.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ErrorLimit *int32 `json:"errorLimit,omitempty"`
	// NoData says what a measurement without data is: no series, NaN, or status 204. Wait
	// (default) does not count it, Pass counts it as a success, Fail as a failure.
	// +optional
	NoData NoDataPolicy `json:"noData,omitempty"`
	// Timeout is how long the gate may take after it was reached. Without a verdict
	// until then it is refused. Default: no limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// DryRun lets the rollout through immediately. What the gate measures and would
	// decide is recorded in its status.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// NoDataPolicy says what a measurement without data is.
// +kubebuilder:validation:Enum=Wait;Pass;Fail
type NoDataPolicy string

// The policies.
const (
	NoDataWait NoDataPolicy = "Wait"
	NoDataPass NoDataPolicy = "Pass"
	NoDataFail NoDataPolicy = "Fail"
)

// LocalSecretReference is a Secret in the same namespace.
type LocalSecretReference struct {
	// Name is that of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// ManualGate is decided by a user or another program.
type ManualGate struct{}

// HTTPGate sends a request. Responses with status 401, 403, 407, 429 or 500 and above are
// errors of the source, and so are redirects, which are not followed.
type HTTPGate struct {
	// URL is an http or https URL. It may contain labels such as {{ .zone }}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/@?#]+([/?].*)?$`
	URL string `json:"url"`
	// Method is GET (default), HEAD or POST.
	// +optional
	// +kubebuilder:validation:Enum=GET;HEAD;POST
	Method string `json:"method,omitempty"`
	// Body is that of a POST. It may contain labels.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Body string `json:"body,omitempty"`
	// Headers are further headers. Credentials belong into secretRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Headers []HTTPHeader `json:"headers,omitempty"`
	// Condition is a CEL expression that is true if the measurement succeeds. Its
	// variables are status (a number), headers (a map of strings, by lower-case name),
	// and json (the body, null if it is not JSON). Default: status == 200.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Condition string `json:"condition,omitempty"`
	// Value is a CEL expression whose value is shown: a number, a string, or true or false.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// Name is that of the header.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]{1,64}$`
	Name string `json:"name"`
	// Value is its value.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// PrometheusGate evaluates PromQL queries.
type PrometheusGate struct {
	// Address is the URL of a server with the HTTP API of Prometheus.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/@?#]+(/[^?#]*)?$`
	Address string `json:"address"`
	// Query has one value as its result, or none if there is no data. It may contain
	// the labels {{ .namespace }}, {{ .group }}, {{ .zone }}, {{ .stage }}, {{ .name }},
	// {{ .revision }} and {{ .gate }}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// Baseline is a second query, to compare with.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Baseline string `json:"baseline,omitempty"`
	// Condition is a CEL expression that is true if the measurement succeeds. Its
	// variables are value and baseline, numbers: value < 0.01.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Condition string `json:"condition"`
}

// JobGate runs a Job for each measurement, made from a CronJob as "kubectl create job --from"
// makes it. The CronJob must allow it, by the annotation spillway.dev/runs-for-gates, and the
// manager must be allowed to create Jobs in the namespace. Containers have the labels of the
// gate as environment variables: SPILLWAY_ZONE, SPILLWAY_REVISION.
type JobGate struct {
	// CronJob is the name of a CronJob in the same namespace. One that only gates run is
	// suspended.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	CronJob string `json:"cronJob"`
}
