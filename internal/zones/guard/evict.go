package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/rollout"
)

// evictionTries is how often an eviction is decided again because others were faster.
// Many come at the same time when a node is drained.
const evictionTries = 40

// evictor lets Pods be evicted within the budget that is for them.
type evictor struct {
	options  Options
	observer observer
	actor    actor
}

// refusal is an answer of no, with its code.
type refusal struct {
	code   int32
	reason string
	// label is the reason in metrics.
	label rollout.Reason
}

// answer is a yes.
type answer struct {
	// label is the reason in metrics.
	label   rollout.Reason
	warning string
	// pin is what the Pod must be when the eviction is made, nil for anything.
	pin *metav1.Preconditions
}

// Handle answers one request.
func (e *evictor) Handle(ctx context.Context, req admission.Request) admission.Response {
	metrics.FormerInFlight.Inc()
	defer metrics.FormerInFlight.Dec()
	yes, err := e.handle(ctx, &req)
	var no refusal
	switch {
	case errors.As(err, &no):
		answered(no.label, int(no.code))
		log.FromContext(ctx).Info("pod eviction denied", "pod", req.Name, "namespace", req.Namespace, "reason", no.reason)
		return denyWith(shown(no.code), no.reason)
	case err != nil:
		answered(reasonError, http.StatusInternalServerError)
		return denyWith(http.StatusTooManyRequests, err.Error()) // it may be otherwise when it is tried again
	}
	answered(yes.label, http.StatusOK)
	log.FromContext(ctx).V(1).Info("pod eviction allowed", "pod", req.Name, "namespace", req.Namespace, "reason", string(yes.label), "pin", yes.pin.String())
	response := allow()
	if yes.warning != "" {
		response = allow(yes.warning)
	}
	if yes.pin != nil {
		response.Patches = pinned(req.Object.Raw, yes.pin)
	}
	return response
}

// answered counts an answer.
func answered(reason rollout.Reason, code int) {
	status := strconv.Itoa(code)
	metrics.ZonesEvictions.WithLabelValues(string(reason), status).Inc()
	metrics.FormerEvictions.WithLabelValues(string(reason), status).Inc()
}

// shown is the code of an answer. What has a code of 500 with rollout-operator would
// count as no answer at all, and its reason would reach no user.
func shown(code int32) int32 {
	if code >= http.StatusInternalServerError {
		return http.StatusForbidden
	}
	return code
}

// pinned makes an eviction one of the Pod that was judged, and of no other: of what
// was admitted the API server would otherwise take whatever has that name by then.
func pinned(raw []byte, pin *metav1.Preconditions) []jsonpatch.Operation {
	eviction := &policyv1.Eviction{}
	if err := json.Unmarshal(raw, eviction); err != nil {
		return nil // the API server does not send what is none
	}
	if eviction.DeleteOptions == nil {
		eviction.DeleteOptions = &metav1.DeleteOptions{}
	}
	if before := eviction.DeleteOptions.Preconditions; before != nil {
		pin = &metav1.Preconditions{UID: cmp.Or(before.UID, pin.UID), ResourceVersion: cmp.Or(before.ResourceVersion, pin.ResourceVersion)}
	}
	eviction.DeleteOptions.Preconditions = pin
	after, err := json.Marshal(eviction)
	if err != nil {
		return nil
	}
	return admission.PatchResponseFromRaw(raw, after).Patches
}

// handle decides in rollout-operator's order.
func (e *evictor) handle(ctx context.Context, req *admission.Request) (answer, error) {
	if err := isEviction(req); err != nil {
		return answer{}, e.deny(http.StatusBadRequest, reasonRequest, err)
	}
	pod, err := e.observer.pod(ctx, req.Namespace, req.Name)
	switch {
	case err != nil:
		return answer{}, e.deny(http.StatusBadRequest, reasonNoPod, err)
	case isNoLoss(pod):
		return e.admitNoLoss(ctx, pod)
	}
	for range evictionTries {
		yes, err := e.decide(ctx, pod, req.DryRun != nil && *req.DryRun)
		if !apierrors.IsConflict(err) {
			return yes, err
		}
	}
	return answer{}, e.deny(http.StatusTooManyRequests, reasonConflict, errors.New("too many pods are being evicted at a time; try again"))
}

// admitNoLoss admits the eviction of a Pod that is down anyway; and where a budget is for
// it, of that one alone, and only while it is so.
func (e *evictor) admitNoLoss(ctx context.Context, pod *corev1.Pod) (answer, error) {
	yes := answer{label: reasonNoLoss, warning: "pod is not ready"}
	all, err := e.observer.budgets(ctx, pod.Namespace)
	if err != nil {
		return yes, err
	}
	if object, err := budget.Matching(all, pod.Labels); object == nil && err == nil {
		return yes, nil
	}
	yes.pin = &metav1.Preconditions{UID: &pod.UID}
	if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
		yes.pin.ResourceVersion = &pod.ResourceVersion
	}
	return yes, nil
}

func isEviction(req *admission.Request) error {
	switch {
	case req.Operation != admissionv1.Create:
		return fmt.Errorf("request operation is not create, got: %s", req.Operation)
	case req.SubResource != "eviction":
		return fmt.Errorf("request SubResource is not eviction, got: %s", req.SubResource)
	case req.Namespace == "" || req.Name == "":
		return errors.New("request did not include both a namespace and a name")
	}
	return nil
}

// isNoLoss is true of a Pod that is down anyway, as the API server sees it.
func isNoLoss(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	default:
		return pod.DeletionTimestamp != nil
	}
}

// decide looks, decides and records, once. A conflict says that another client was faster.
func (e *evictor) decide(ctx context.Context, pod *corev1.Pod, dry bool) (answer, error) {
	found, seen, err := e.look(ctx, pod)
	if err != nil {
		return answer{}, err
	}
	if found == nil {
		return answer{label: reasonNotInScope}, nil
	}
	if err := e.judge(ctx, found); err != nil {
		return answer{}, err
	}
	yes := answer{label: reasonAllowed, pin: &metav1.Preconditions{UID: &pod.UID}}
	if dry {
		return yes, nil
	}
	return yes, e.record(ctx, found, seen)
}

// look reads what an eviction is decided from: what others have written down first,
// then the Pods. It is nil if no budget is for the Pod.
func (e *evictor) look(ctx context.Context, pod *corev1.Pod) (*eviction, v1alpha1.Seen, error) {
	var seen v1alpha1.Seen
	found := &eviction{now: e.options.Now(), pod: pod}
	if ok, err := e.readBudget(ctx, found); err != nil || !ok {
		return nil, seen, err
	}
	owner, err := e.owner(ctx, pod)
	if err != nil {
		return nil, seen, e.deny(http.StatusInternalServerError, reasonNoSet, err)
	}
	if found.group, err = e.group(ctx, owner); err != nil {
		return nil, seen, err
	}
	zones, seen, err := e.observer.scope(ctx, pod.Namespace, found.budget.Object.Spec.Selector.MatchLabels)
	if err != nil {
		return nil, seen, err
	}
	found.zones, found.owner = zones, &zone{set: owner}
	for i := range zones {
		if zones[i].set.UID == owner.UID {
			found.owner = &zones[i]
		}
	}
	return found, seen, nil
}

// readBudget reads the budget that is for the Pod; false if there is none.
func (e *evictor) readBudget(ctx context.Context, found *eviction) (bool, error) {
	all, err := e.observer.budgets(ctx, found.pod.Namespace)
	if err != nil {
		return false, err
	}
	object, err := budget.Matching(all, found.pod.Labels)
	if err != nil {
		return false, e.deny(http.StatusBadRequest, reasonBudget, err)
	}
	if object == nil {
		return false, nil
	}
	if found.budget, err = budget.Of(object); err != nil {
		return false, e.deny(http.StatusBadRequest, reasonBudget, err)
	}
	return true, nil
}

// judge says why a Pod must not be evicted, nil if it may.
func (e *evictor) judge(ctx context.Context, found *eviction) error {
	most := found.budget.Unavailable(found.owner.set)
	if most == 0 {
		return e.deny(http.StatusForbidden, reasonZero, errors.New("max unavailable = 0"))
	}
	if len(found.zones) < 2 {
		return e.deny(http.StatusBadRequest, reasonFewZones, errors.New("minimum number of StatefulSets not found"))
	}
	var err error
	if found.partition, err = found.budget.PartitionOf(found.pod.Name); err != nil {
		return e.deny(http.StatusBadRequest, reasonPartition, err)
	}
	if v := found.decideBudget(most); !v.allowed {
		return e.deny(http.StatusTooManyRequests, reasonDenied, errors.New(v.because))
	}
	if v := found.decideLock(); !v.allowed {
		return e.deny(http.StatusTooManyRequests, reasonLocked, errors.New(v.because))
	}
	native, err := e.observer.nativeBudgets(ctx, found.pod.Namespace)
	if err != nil {
		return err
	}
	if name := refusing(native, found.pod); name != "" {
		return e.deny(http.StatusTooManyRequests, reasonNative, errors.New("PodDisruptionBudget "+name+" allows no disruption now"))
	}
	return nil
}

func (e *evictor) deny(code int32, label rollout.Reason, err error) error {
	return refusal{code: code, reason: err.Error(), label: label}
}

// Error is the sentence.
func (r refusal) Error() string { return r.reason }

// record writes the eviction down, the lock first: a lock that is held for nothing
// harms less than an eviction that is written nowhere.
func (e *evictor) record(ctx context.Context, found *eviction, seen v1alpha1.Seen) error {
	if group := found.group; group != nil {
		lock.TakeForEviction(&group.Status, group.Name, found.owner.set.Name, found.now)
		lock.See(&group.Status, seen)
		if err := e.actor.keeper.Write(ctx, group); err != nil {
			return err
		}
	}
	found.record()
	return e.actor.recordEviction(ctx, found.budget.Object)
}

// owner is the StatefulSet that controls a Pod.
func (e *evictor) owner(ctx context.Context, pod *corev1.Pod) (*appsv1.StatefulSet, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil, errors.New("unable to find a StatefulSet pod owner")
	}
	if owner.Kind != "StatefulSet" {
		return nil, fmt.Errorf("pod owner is not a StatefulSet - %s has owner %s (%s)", pod.Name, owner.Name, owner.Kind)
	}
	set, err := e.observer.set(ctx, pod.Namespace, owner.Name)
	if err != nil {
		return nil, fmt.Errorf("unable to find StatefulSet %s by name: %w", owner.Name, err)
	}
	return set, nil
}

// group is the RolloutGroup of a StatefulSet, nil if it has none.
func (e *evictor) group(ctx context.Context, set *appsv1.StatefulSet) (*v1alpha1.RolloutGroup, error) {
	var none *v1alpha1.RolloutGroup
	name := vocabulary.GroupOf(set.Labels, set.Annotations)
	if name == "" {
		return none, nil
	}
	group, err := e.observer.lockOf(ctx, set.Namespace, name)
	if errors.Is(err, errNoGroup) {
		return none, nil
	}
	return group, err
}
