package guard

import (
	"crypto/tls"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/guard/policies"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

// The paths that rollout-operator serves.
const (
	PathNoDownscale      = "/admission/no-downscale"
	PathPrepareDownscale = "/admission/prepare-downscale"
	PathPodEviction      = "/admission/pod-eviction"
	// PathPrepareScale is ours: the same answers as those of PathPrepareDownscale, about Scales.
	PathPrepareScale = "/admission/prepare-downscale/scale"
	PathValidation   = "/admission/zpdb-validation"
)

// Options are what the user of the manager chooses.
type Options struct {
	// ClusterDomain is the domain under which Services have names.
	// Empty is [preparehook.DefaultDomain].
	ClusterDomain string
	// PodTimeout is how long a Pod has to answer; zero has a default.
	PodTimeout time.Duration
	// FailClosed refuses what rollout-operator lets pass when it cannot find out
	// whether a downscale is forbidden or must be prepared.
	FailClosed bool
	// Now is the clock.
	Now func() time.Time
}

const (
	// quickTimeout and prepareTimeout are how long, in seconds, the API server waits.
	// Pods that are called have all the time that there is.
	quickTimeout   = 10
	prepareTimeout = 30
)

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups/status,verbs=update
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list

// Declared is what the guards want the cluster to have.
func Declared() admission.Declared { return Declare(Options{}) }

// Declare is [Declared] for the choices that matter there: FailClosed.
//
// By default, with no manager to answer, a Scale whose object has the label
// no-downscale is lowered, since it cannot be told from any other; a StatefulSet whose
// Pods must be told stays, and so does the Scale of any in a namespace that has such
// StatefulSets; and a Pod stays whose namespace has a budget.
func Declare(o Options) admission.Declared {
	unasked := admissionregistrationv1.Ignore
	if o.FailClosed {
		unasked = admissionregistrationv1.Fail
	}
	lowered := admissionregistrationv1.MatchCondition{Name: "lowers-replicas", Expression: policies.LowersInCEL}
	return admission.Declared{
		Policies: slices.Concat(policies.NoDownscale(), policies.OutOfTurn()), Unanswered: slices.Concat(policies.Unanswered(), policies.Unasked()),
		Webhooks: []admission.Webhook{
			{
				Name: "no-downscale.zones.spillway.dev", Path: PathNoDownscale, FailurePolicy: unasked, TimeoutSeconds: quickTimeout,
				Rules:           policies.Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "deployments/scale", "statefulsets/scale", "replicasets/scale"),
				MatchConditions: []admissionregistrationv1.MatchCondition{lowered},
			},
			{
				Name: "prepare-downscale.zones.spillway.dev", Path: PathPrepareDownscale,
				FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: prepareTimeout,
				SideEffects:     admissionregistrationv1.SideEffectClassNoneOnDryRun,
				Rules:           policies.Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "statefulsets"),
				MatchConditions: []admissionregistrationv1.MatchCondition{lowered, {Name: "prepared", Expression: policies.HasLabel(vocabulary.PrepareDownscale)}},
			},
			{
				Name: policies.PrepareScale, Path: PathPrepareScale,
				FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: prepareTimeout,
				SideEffects:       admissionregistrationv1.SideEffectClassNoneOnDryRun,
				NamespaceSelector: policies.Asked(),
				Rules:             policies.Rules(admissionregistrationv1.Update, appsv1.GroupName, "v1", "statefulsets/scale"),
				MatchConditions:   []admissionregistrationv1.MatchCondition{lowered},
			},
			{
				Name: policies.PodEviction, Path: PathPodEviction, Marked: true, GuardedBy: policies.PodEviction,
				FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: quickTimeout,
				SideEffects: admissionregistrationv1.SideEffectClassNoneOnDryRun,
				Rules:       policies.Rules(admissionregistrationv1.Create, "", "v1", "pods/eviction"),
			},
			{
				// For a budget that is invalid every eviction is refused, and so it is without a manager.
				Name: "zpdb-validation.zones.spillway.dev", Path: PathValidation, GuardedBy: policies.PodEviction,
				FailurePolicy: unasked, TimeoutSeconds: quickTimeout,
				Rules: append(policies.Rules(admissionregistrationv1.Create, zonesv1.GroupVersion.Group, zonesv1.GroupVersion.Version, "zoneawarepoddisruptionbudgets"),
					policies.Rules(admissionregistrationv1.Update, zonesv1.GroupVersion.Group, zonesv1.GroupVersion.Version, "zoneawarepoddisruptionbudgets")...),
			},
		},
	}
}

// Routes answer the webhooks of [Declared].
func Routes(mgr ctrl.Manager, o Options) ([]admission.Route, error) {
	if o.ClusterDomain == "" {
		o.ClusterDomain = preparehook.DefaultDomain
	}
	look := observer{live: mgr.GetAPIReader()}
	keeper := lock.Keeper{Live: mgr.GetAPIReader(), Writer: mgr.GetClient()}
	caller := preparehook.New(o.PodTimeout, &tls.Config{MinVersion: tls.VersionTLS12})
	prepares := &preparer{options: o, observer: look, keeper: keeper, caller: caller}
	evicts := &evictor{options: o, observer: look, actor: actor{writer: mgr.GetClient(), keeper: keeper}}
	b := blind{o}
	return []admission.Route{
		{Path: PathNoDownscale, Handler: &forbidder{options: o, live: mgr.GetAPIReader()}, Blind: webhook.HandlerFunc(b.forbids)},
		{Path: PathPrepareDownscale, Handler: prepares, Blind: webhook.HandlerFunc(b.prepares)},
		{Path: PathPrepareScale, Handler: prepares, Blind: webhook.HandlerFunc(b.prepares)},
		{Path: PathPodEviction, Handler: evicts, Blind: webhook.HandlerFunc(b.evicts)},
		{Path: PathValidation, Handler: validator{}, Blind: validator{}},
	}, nil
}
