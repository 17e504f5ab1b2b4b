package admit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Options are the manager's choices for admission.
type Options struct {
	// Namespaces are those to watch, all if empty.
	Namespaces []string
	// AllowCrossNamespace lets workloads name extra config of other namespaces that
	// did not opt in to it.
	AllowCrossNamespace bool
	// PinNamespaces are those whose workloads may keep the config of each revision, and PinBy
	// is what points their Pods at it.
	PinNamespaces pin.Namespaces
	PinBy         pin.By
	// Policies are the kinds of policies that can be read; none if nil.
	Policies *policy.Kinds
	// SuspendBy is how a new workload whose config is missing is suspended.
	SuspendBy workload.SuspendBy
	// Now is the clock.
	Now func() time.Time
}

// Routes answer the ring's webhooks.
func Routes(mgr ctrl.Manager, o Options) ([]admission.Route, error) {
	provided, err := content.DriverInstalled(mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	handler := &handler{
		options: o, live: mgr.GetAPIReader(), lists: mgr.GetCache(), writer: mgr.GetClient(), provided: provided,
		snapshots: snapshots.NewKeeper(mgr.GetAPIReader(), mgr.GetClient(), o.Now),
	}
	if o.Policies != nil {
		handler.policies = func() *policy.Reader { return o.Policies.Reader(mgr.GetCache()) }
	}
	var routes []admission.Route
	if o.PinBy == pin.ByWebhook {
		routes = pinRoutes(o.PinNamespaces)
	}
	for _, kind := range workload.Kinds() {
		routes = append(routes, admission.Route{Path: webhookPath(kind), Handler: handler, Blind: blind(o)})
	}
	return routes, nil
}

// handler answers the API server when a workload is created or updated.
type handler struct {
	options Options
	// live reads ConfigMaps and Secrets from the API server: one that was created
	// shortly before the workload may not be in a cache yet.
	live client.Reader
	// lists lists what the secrets store driver has mounted.
	lists client.Reader
	// writer asks what the user may read.
	writer client.Writer
	// snapshots writes those that a template needs which a user changes.
	snapshots *snapshots.Keeper
	// policies reads the policies, for one request; nil without any.
	policies func() *policy.Reader
	// provided is true where that driver is installed.
	provided bool
}

// NewOffline answers on a substitute for a cluster.
func NewOffline(on client.Client, o Options) webhook.Handler {
	return &handler{options: o, live: on, lists: on, writer: on, snapshots: snapshots.NewKeeper(on, on, o.Now)}
}

// blind answers requests that may come from anybody, from what they say alone. It keeps a
// hash that the request would remove. The ring does the rest later.
func blind(o Options) webhook.Handler { return &handler{options: o} }

// Handle answers one request.
func (h *handler) Handle(ctx context.Context, req webhook.Request) webhook.Response {
	if isOurs(req.Options.Raw) || !h.options.watches(req.Namespace) {
		return webhook.Allowed("")
	}
	now, before, err := decode(req)
	if err != nil { // the failure policy allows the request
		return webhook.Errored(http.StatusInternalServerError, err)
	}
	attempt := attempt{now: h.read(ctx, now, req.Namespace), unchanged: sameTemplate(before, now)}
	if before != nil {
		attempt.before = h.read(ctx, before, req.Namespace)
	}
	if attempt.now.Settings.Tracked && !attempt.replacesNothing() { // otherwise its config does not matter
		by := reader{h.writer, req.UserInfo}
		h.observe(ctx, attempt.now, by)
		attempt.newer = h.newer(ctx, attempt, by, req.DryRun != nil && *req.DryRun)
	}
	return response(decide(attempt, h.options))
}

// isOurs is true for a write of the ring, which sets everything itself.
func isOurs(options []byte) bool {
	var o metav1.UpdateOptions
	return json.Unmarshal(options, &o) == nil && o.FieldManager == kube.FieldOwner
}

// watches is true if workloads of the namespace are watched.
func (o Options) watches(namespace string) bool {
	return ring.Watches(o.Namespaces, namespace)
}

// watched are the references to what may be read at all.
func (o Options) watched(refs []content.Reference) []content.Reference {
	return slices.DeleteFunc(slices.Clone(refs), func(r content.Reference) bool { return !o.watches(r.Object.Namespace) })
}

// decode reads the workload as requested, and as it was; nil if it is created.
func decode(req webhook.Request) (now, before client.Object, err error) {
	if !slices.Contains(workload.Kinds(), req.Kind.Kind) {
		return nil, nil, fmt.Errorf("unknown kind of workload %q", req.Kind.Kind)
	}
	now = workload.New(req.Kind.Kind)
	if err := json.Unmarshal(req.Object.Raw, now); err != nil {
		return nil, nil, fmt.Errorf("decode the workload: %w", err)
	}
	if now.GetNamespace() == "" {
		now.SetNamespace(req.Namespace)
	}
	if req.Operation != admissionv1.Update {
		return now, nil, nil
	}
	before = workload.New(req.Kind.Kind)
	if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("decode the former workload: %w", err)
	}
	return now, before, nil
}

func (h *handler) read(ctx context.Context, obj client.Object, namespace string) *workload.Workload {
	w := workload.Read(obj)
	w.Adopt(h.adopted(ctx, w.Name))
	if w.Settings.Tracked && h.pins(ctx, namespace) {
		w.PinBy(h.pinning(ctx, &w, namespace))
		w.Allow("")
	}
	return &w
}

// adopted is what is recorded of the adoption of a workload. If that cannot be read, the ring rolls it once more.
func (h *handler) adopted(ctx context.Context, of workload.Name) workload.Baseline {
	if h.policies == nil {
		return workload.Baseline{}
	}
	r, err := h.policies().Record(ctx, of.Namespace, verdict.OfAdopted)
	if err != nil {
		return workload.Baseline{}
	}
	all, _ := verdict.Adopted(r)
	return all[of]
}

// pins is true if workloads of a namespace may keep their config. One that says nothing yet is given
// its pins by the ring.
func (h *handler) pins(ctx context.Context, namespace string) bool {
	if h.live == nil && h.options.PinNamespaces.Selector != nil {
		return false
	}
	return snapshots.NewWhere(h.options.PinNamespaces, h.live).On(ctx, namespace)
}

// pinning is the policy by which a workload keeps its config, empty if there is none, or none
// that can be read: then the ring pins it later.
func (h *handler) pinning(ctx context.Context, w *workload.Workload, namespace string) string {
	if h.policies == nil || !w.Settings.Tracked || w.Settings.PinSet {
		return ""
	}
	set, err := h.policies().Read(ctx, []string{namespace})
	if err != nil {
		return ""
	}
	if p := set.Pinning(namespace, w.Object.GetLabels(), w.Demand.Uses); p != nil {
		return p.String()
	}
	return ""
}

// observe reads the config of a workload from the API server. After a failed read
// there is no hash, and objects that were not read count as missing. Nothing is read
// that the user may not read: then the ring sets the hash later.
func (h *handler) observe(ctx context.Context, w *workload.Workload, by reader) {
	if h.live == nil || !by.mayRead(ctx, h.options.watched(w.Demand.Uses)) {
		return
	}
	live := newOnceReader(h.live, h.lists)
	live.prefetch(ctx, w.Demand.Uses)
	lookup := content.Source{
		Digests: content.Digesting(live), Values: live, Provided: h.provided,
		Namespaces: h.options.Namespaces, AllowCrossNamespace: h.options.AllowCrossNamespace,
	}.Lookup()
	known := &content.Known{}
	_, err := lookup.Observe(ctx, known, "", w.Demand)
	if err == nil && known.IsComplete() {
		lookup.Hash(ctx, []*content.Known{known})
	}
	w.Observe(known)
}

// response is an answer as the API server expects it.
func response(a answer) webhook.Response {
	res := webhook.Allowed("")
	res.Warnings = a.warnings
	for _, op := range a.operations {
		res.Patches = append(res.Patches, jsonpatch.NewOperation(op.Op, op.Path, op.Value))
	}
	return res
}
