package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/charts"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/manager"
)

// Values are those of the chart, which a file of install --values has too. The values.yaml of the
// chart describes them.
type Values struct {
	Image             Image                             `json:"image"`
	NameOverride      string                            `json:"nameOverride"`
	FullnameOverride  string                            `json:"fullnameOverride"`
	ImagePullSecrets  []corev1.LocalObjectReference     `json:"imagePullSecrets"`
	Rings             []string                          `json:"rings"`
	WatchNamespaces   []string                          `json:"watchNamespaces"`
	PinNamespaces     []string                          `json:"pinNamespaces"`
	PinSelector       *metav1.LabelSelector             `json:"pinNamespaceSelector"`
	PinBy             pin.By                            `json:"pinBy"`
	DefaultPolicy     bool                              `json:"defaultConfigPolicy"`
	DefaultPolicySpec map[string]any                    `json:"defaultConfigPolicySpec"`
	Reloader          Reloader                          `json:"reloader"`
	Args              []string                          `json:"args"`
	Env               []corev1.EnvVar                   `json:"env"`
	CRDs              bool                              `json:"crds"`
	Replicas          int32                             `json:"replicas"`
	Resources         corev1.ResourceRequirements       `json:"resources"`
	PriorityClassName string                            `json:"priorityClassName"`
	NodeSelector      map[string]string                 `json:"nodeSelector"`
	Tolerations       []corev1.Toleration               `json:"tolerations"`
	Affinity          *corev1.Affinity                  `json:"affinity"`
	TopologySpread    []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	PodAnnotations    map[string]string                 `json:"podAnnotations"`
	PodLabels         map[string]string                 `json:"podLabels"`
	AccountNotes      map[string]string                 `json:"serviceAccountAnnotations"`
	ExtraVolumes      []corev1.Volume                   `json:"extraVolumes"`
	ExtraMounts       []corev1.VolumeMount              `json:"extraVolumeMounts"`
	Webhooks          Webhooks                          `json:"webhooks"`
	RestrictManager   bool                              `json:"restrictManager"`
	Metrics           Metrics                           `json:"metrics"`
	NetworkPolicy     bool                              `json:"networkPolicy"`
	DisruptionBudget  bool                              `json:"podDisruptionBudget"`
	Dashboard         Dashboard                         `json:"dashboard"`
	PackageKinds      bool                              `json:"packageKinds"`
	PlanAccounts      []string                          `json:"planAccounts"`
	DefaultAccount    string                            `json:"defaultServiceAccount"`
	WaveCleanup       bool                              `json:"waveCleanup"`
}

// Image is where the image of the manager is.
type Image struct {
	Repository string            `json:"repository"`
	Tag        string            `json:"tag"`
	Digest     string            `json:"digest"`
	PullPolicy corev1.PullPolicy `json:"pullPolicy"`
}

// Reloader says what annotations of Reloader do.
type Reloader struct {
	Annotations bool `json:"annotations"`
	CronJobs    bool `json:"cronJobs"`
	Metrics     bool `json:"metrics"`
}

// Webhooks say how the webhooks are served.
type Webhooks struct {
	Enabled           bool             `json:"enabled"`
	CertificateSource admission.Source `json:"certificateSource"`
	Hosts             []string         `json:"hosts"`
	Configurations    []string         `json:"configurations"`
	APIServers        []string         `json:"apiServers"`
	ClientCA          string           `json:"clientCA"`
	ClientNames       []string         `json:"clientNames"`
	FailClosed        bool             `json:"failClosed"`
}

// Metrics say how the metrics are served.
type Metrics struct {
	Secure           bool              `json:"secure"`
	ServiceMonitor   bool              `json:"serviceMonitor"`
	MonitorLabels    map[string]string `json:"serviceMonitorLabels"`
	MonitorInterval  string            `json:"serviceMonitorInterval"`
	PrometheusRule   bool              `json:"prometheusRule"`
	RuleLabels       map[string]string `json:"prometheusRuleLabels"`
	GrafanaBoards    bool              `json:"grafanaDashboards"`
	GrafanaBoardTags map[string]string `json:"grafanaDashboardsLabels"`
}

// Dashboard says how the dashboard runs in the cluster.
type Dashboard struct {
	Enabled   bool                        `json:"enabled"`
	Namespace string                      `json:"namespace"`
	Steering  bool                        `json:"steering"`
	Users     []string                    `json:"users"`
	Groups    []string                    `json:"groups"`
	Replicas  int32                       `json:"replicas"`
	Args      []string                    `json:"args"`
	Ingress   Ingress                     `json:"ingress"`
	HTTPRoute HTTPRoute                   `json:"httpRoute"`
	Resources corev1.ResourceRequirements `json:"resources"`
}

// Ingress says how browsers reach the dashboard through an Ingress.
type Ingress struct {
	Enabled     bool              `json:"enabled"`
	Host        string            `json:"host"`
	ClassName   string            `json:"className"`
	Annotations map[string]string `json:"annotations"`
	TLSSecret   string            `json:"tlsSecret"`
}

// HTTPRoute says how they reach it through a Gateway.
type HTTPRoute struct {
	Enabled    bool             `json:"enabled"`
	Hostnames  []string         `json:"hostnames"`
	ParentRefs []map[string]any `json:"parentRefs"`
}

const (
	// maxName leaves room for what the names of some objects end in.
	maxName = 40
	// All stands for all names in a list of users, groups or webhook configurations. A client that
	// may patch any webhook configuration has the whole cluster.
	All = "*"
	// Repository is where the images of releases are.
	Repository = "ghcr.io/spillway-dev/spillway"
)

// DefaultValues returns those that hold unless a user says otherwise.
func DefaultValues() Values {
	var v Values
	raw, err := charts.Files.ReadFile("spillway/values.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(raw, &v)
	}
	if err != nil {
		panic(fmt.Sprintf("the values of the chart in this program: %v", err))
	}
	return v
}

// ParseValues reads a file of values, over the defaults. It is an error if it has one that
// is not known.
func ParseValues(raw []byte) (Values, error) {
	v := DefaultValues()
	if err := yaml.UnmarshalStrict(raw, &v); err != nil {
		return Values{}, fmt.Errorf("values: %w", err)
	}
	known := append(manager.Rings(), manager.RingFleet, manager.RingAssemblage)
	for _, ring := range v.Rings {
		if !slices.Contains(known, ring) {
			return Values{}, fmt.Errorf("values: rings: %q is not known; use %s", ring, strings.Join(known, ", "))
		}
	}
	o := Options{Values: v}
	return v, o.Validate()
}

// Name is that of the Deployment and the ServiceAccount, with which the names of others begin.
func (v *Values) Name() string { return cmp.Or(v.FullnameOverride, v.NameOverride, name) }

// DashboardName is the name of the dashboard's Deployment and ServiceAccount.
func (v *Values) DashboardName() string { return v.Name() + "-dashboard" }

// PinRole is the name of the roles of the manager for pins.
func (v *Values) PinRole() string { return v.Name() + "-pins" }

// validateName says what is wrong with the name, by those of the values.
func (v *Values) validateName() error {
	if wrong := validation.IsDNS1035Label(v.Name()); len(wrong) > 0 || len(v.Name()) > maxName {
		return fmt.Errorf("nameOverride, fullnameOverride: %q is no name; use at most %d lower case letters, digits and -, a letter first", v.Name(), maxName)
	}
	return nil
}

// ImageOr returns the image that the values name, and another where they name none.
func (v *Values) ImageOr(image string) string {
	switch {
	case v.Image.Digest != "":
		return v.Image.Repository + "@" + v.Image.Digest
	case v.Image.Tag != "":
		return v.Image.Repository + ":" + v.Image.Tag
	case v.Image.Repository != Repository:
		return v.Image.Repository + tagOf(image)
	default:
		return image
	}
}
