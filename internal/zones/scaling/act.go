package scaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/internal/zones/replica"
)

// actor makes all the writes and calls.
type actor struct {
	observer *observer
	client   client.Client
	keeper   lock.Keeper
	caller   *preparehook.Caller
	options  Options
}

// results are what became of a pass. Nil is what was written that is no scale.
type results = ring.Results[*v1alpha1.RolloutGroup, *Scale]

// act does what the plan says: what is written down is settled first.
func (a *actor) act(ctx context.Context, s *snapshot, p *Plan, m *memory) (r results) {
	if p.Settlement.Verdict != Wait {
		r.Add(ring.Change{Act: "Settle", Object: settling}, nil, a.settle(ctx, s, p.Settlement))
	}
	for i := range s.Sets {
		if calls := p.callsTo(s.Sets[i].Name); len(calls) > 0 {
			r.Add(ring.Change{Act: "Call", Object: s.Sets[i].Name}, nil, a.callAll(ctx, s, calls, m))
		}
	}
	for i := range p.Scales {
		scale := &p.Scales[i]
		r.Add(ring.Change{Act: "Scale", Object: scale.Set.Name}, scale, a.scale(ctx, s, scale))
	}
	for _, w := range p.WriteBacks {
		r.Add(ring.Change{Act: "WriteBack", Object: w.Mirror.String()}, nil, a.writeBack(ctx, s.key.Namespace, w))
	}
	if contests := p.contests(); len(r.Writes) == 0 && s.HasGroup && !isNoted(s.Status.Conditions, contests) {
		r.Add(ring.Change{Act: "Condition", Object: s.key.Name}, nil, a.noteContests(ctx, s, contests))
	}
	return r
}

// noteContests says in the group that another client sets replicas back, or not any more. It is
// written if no client has written the group since it was seen; otherwise it is decided again.
func (a *actor) noteContests(ctx context.Context, s *snapshot, contests string) error {
	group := s.group.DeepCopy()
	setContests(group, contests, a.options.Now())
	return a.keeper.Write(ctx, group)
}

// callAll makes the calls to one set.
func (a *actor) callAll(ctx context.Context, s *snapshot, calls []Call, m *memory) error {
	var failed error
	for _, call := range calls {
		failed = errors.Join(failed, a.call(ctx, s, call, m))
	}
	return failed
}

// call tells Pods of a delayed downscale what they are to do.
func (a *actor) call(ctx context.Context, s *snapshot, call Call, m *memory) error {
	set, object := s.set(call.Set), s.object(call.Set)
	pods, err := a.observer.pods(ctx, object)
	if err != nil {
		return err
	}
	said := map[int]Answer{}
	listening := a.listening(object, pods, call, said)
	endpoint := preparehook.Endpoint{URL: set.Settings.Delay.URL, Service: object.Spec.ServiceName}
	targets := endpoint.Targets(object.Namespace, a.domain(), listening)
	method := http.MethodDelete
	if call.Prepare {
		method = http.MethodPost
	}
	var failed error
	for i, answer := range a.caller.Call(ctx, method, targets) {
		told, err := a.answer(call, &answer)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		said[replica.Ordinal(set.Name, listening[i].Name)] = told
	}
	m.note(set.UID, said)
	return failed
}

// listening are the Pods to call. Where no process listens there is nothing to
// prepare, and nothing to undo.
func (a *actor) listening(set *appsv1.StatefulSet, pods []corev1.Pod, call Call, said map[int]Answer) []corev1.Pod {
	wanted := map[int]bool{}
	for _, n := range call.Ordinals {
		wanted[n] = true
		said[n] = Answer{Stays: !call.Prepare, Asked: a.options.Now(), AsOf: set.ResourceVersion}
	}
	var listening []corev1.Pod
	for i := range pods {
		if n := replica.Ordinal(set.Name, pods[i].Name); wanted[n] && preparehook.CanListen(&pods[i]) {
			listening = append(listening, pods[i])
			delete(said, n)
		}
	}
	return listening
}

// scale writes the replicas of a set, under the lock if that is ours to take.
func (a *actor) scale(ctx context.Context, s *snapshot, scale *Scale) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if scale.Locks {
		if err := a.lock(ctx, s, scale); err != nil {
			return err
		}
	}
	err := a.write(ctx, s, scale)
	if err != nil && scale.To < scale.From && (isRefusal(err) || ring.IsConflict(err)) && s.HasGroup {
		return errors.Join(err, a.refuse(ctx, s, scale, err))
	}
	return err
}

// write writes the replicas.
func (a *actor) write(ctx context.Context, s *snapshot, scale *Scale) error {
	noted, err := json.Marshal(scale.Set.next(scale.To, a.options.Now()))
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	patch, err := ring.MergePatch(scale.Set.UID, scale.Set.ResourceVersion, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{vocabulary.Scaled.Native: string(noted)}},
		"spec":     map[string]any{"replicas": scale.To},
	})
	if err != nil {
		return err
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: scale.Set.Name}}
	err = a.client.Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("scale StatefulSet %s: %w", scale.Set.Name, err)
	}
	return nil
}

// writeBack writes the status of a mirrored object, if it is as it was seen.
func (a *actor) writeBack(ctx context.Context, namespace string, w WriteBack) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	mappings, err := a.observer.mapper.RESTMappings(w.Mirror.Kind.GroupKind())
	if err != nil {
		return fmt.Errorf("find the kind of %s: %w", w.Mirror, err)
	}
	patch, err := ring.MergePatch(w.Mirrored.UID, w.Mirrored.ResourceVersion, map[string]any{"status": map[string]any{"replicas": w.Replicas}})
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mappings[0].GroupVersionKind)
	obj.SetNamespace(namespace)
	obj.SetName(w.Mirror.Name)
	err = a.client.Status().Patch(ctx, obj, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", w.Mirror, err)
	}
	return nil
}

// settle acts upon a verdict, if it is the same when the API server itself is asked.
func (a *actor) settle(ctx context.Context, s *snapshot, settlement Settlement) error {
	if settlement.Verdict == Release {
		return a.release(ctx, s)
	}
	d := settlement.Downscale
	set, err := a.observer.set(ctx, s.key.Namespace, d.Zone)
	if err != nil {
		return err
	}
	if settlement.Verdict == Revive {
		return a.revive(ctx, s, d, set)
	}
	verdict := judge(d, liveSet(set), a.options.Now()).Verdict
	if verdict == Wait || verdict != settlement.Verdict {
		return nil
	}
	if verdict == Undo {
		if err := a.undo(ctx, d, set); err != nil && !settlement.Last {
			return err
		}
	}
	return a.keeper.Change(ctx, s.key, func(status *v1alpha1.RolloutGroupStatus) bool {
		return a.close(status, d, verdict, set)
	})
}

// close ends what is written down, if it is still the same.
func (*actor) close(status *v1alpha1.RolloutGroupStatus, d *v1alpha1.Downscale, verdict Verdict, set *appsv1.StatefulSet) bool {
	if status.Downscale == nil || status.Downscale.Zone != d.Zone || !status.Downscale.At.Equal(&d.At) {
		return false
	}
	if verdict == Land {
		lock.Land(status)
	} else {
		lock.Drop(status)
	}
	if set != nil {
		lock.See(status, v1alpha1.Seen{StatefulSets: set.ResourceVersion})
	}
	return true
}

// undo tells the Pods that were to go that they stay.
func (a *actor) undo(ctx context.Context, d *v1alpha1.Downscale, set *appsv1.StatefulSet) error {
	pods, err := a.observer.pods(ctx, set)
	if err != nil {
		return err
	}
	return a.stay(ctx, set, preparehook.Leaving(set, pods, d.From, d.To))
}

// revive tells those Pods that they stay which were prepared to go, and were not gone
// yet when there were to be more again.
func (a *actor) revive(ctx context.Context, s *snapshot, d *v1alpha1.Downscale, set *appsv1.StatefulSet) error {
	if set != nil && set.UID == d.UID {
		pods, err := a.observer.pods(ctx, set)
		if err != nil {
			return err
		}
		if err := a.stay(ctx, set, survivors(d, set, pods)); err != nil {
			return err
		}
	}
	return a.keeper.Change(ctx, s.key, func(status *v1alpha1.RolloutGroupStatus) bool {
		i := slices.IndexFunc(status.Downscales, func(e v1alpha1.Downscale) bool { return e.Zone == d.Zone && e.At.Equal(&d.At) })
		if i < 0 || !status.Downscales[i].Prepares {
			return false
		}
		status.Downscales[i].Prepares = false
		return true
	})
}

// stay tells Pods that they stay.
func (a *actor) stay(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	endpoint, missing := preparehook.EndpointOf(set)
	if missing != "" { // it was taken away since; there is nothing to call
		return nil
	}
	var failed error
	for _, answer := range a.caller.Call(ctx, http.MethodDelete, endpoint.Targets(set.Namespace, a.domain(), pods)) {
		failed = errors.Join(failed, answer.Err)
	}
	return failed
}

// answer is what the reply of a Pod means. One of a Pod that stays and says 409 is kept as it is
// by another client.
func (a *actor) answer(call Call, answer *preparehook.Answer) (Answer, error) {
	asked := a.options.Now()
	switch {
	case !call.Prepare && answer.Status == http.StatusConflict:
		return Answer{Stays: true, Asked: asked}, nil
	case answer.Err != nil:
		return Answer{}, answer.Err
	case !call.Prepare:
		return Answer{Stays: true, Asked: asked}, nil
	}
	var said struct {
		Timestamp int64 `json:"timestamp"`
	}
	if err := json.Unmarshal(answer.Body, &said); err != nil || said.Timestamp <= 0 {
		return Answer{}, fmt.Errorf("POST of Pod %s: its answer has no timestamp", answer.Target.Pod)
	}
	return Answer{Since: time.Unix(said.Timestamp, 0), Asked: asked}, nil
}

func (a *actor) domain() string {
	if a.options.ClusterDomain == "" {
		return preparehook.DefaultDomain
	}
	return a.options.ClusterDomain
}

// survivors are the Pods that are as old as a downscale that they were to go with.
func survivors(d *v1alpha1.Downscale, set *appsv1.StatefulSet, pods []corev1.Pod) []corev1.Pod {
	remain := int32(min(int(d.From), liveSet(set).Replicas)) //nolint:gosec // of two numbers one of which is such a one
	return slices.DeleteFunc(preparehook.Leaving(set, pods, remain, d.To), func(p corev1.Pod) bool {
		return p.CreationTimestamp.After(d.At.Time)
	})
}

func liveSet(set *appsv1.StatefulSet) *Set {
	if set == nil {
		return nil
	}
	s := setOf(set)
	return &s
}

// release gives back the lock that evictions hold, once all were seen.
func (a *actor) release(ctx context.Context, s *snapshot) error {
	since := s.Status.Lock.Expires
	seen, asOf, err := a.observer.evictionsSeen(ctx, s.key.Namespace)
	if err != nil || !seen {
		return err
	}
	return a.keeper.Change(ctx, s.key, func(status *v1alpha1.RolloutGroupStatus) bool {
		l := status.Lock
		if l == nil || l.Purpose != v1alpha1.PurposeEviction || !l.Expires.Equal(since) {
			return false // there is another one since
		}
		lock.ReleaseEviction(status)
		lock.See(status, asOf)
		return true
	})
}

// isRefusal is true of an answer of the API server that says that nothing was written,
// and that the same would not be written again.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || ring.IsConflict(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 || strings.Contains(err.Error(), "failed calling webhook")
}

// refuse gives the lock back for which nothing comes any more; and notes why and when
// the downscale is tried again, unless it only lost a conflict.
func (a *actor) refuse(ctx context.Context, s *snapshot, scale *Scale, why error) error {
	return a.keeper.Change(context.WithoutCancel(ctx), s.key, func(status *v1alpha1.RolloutGroupStatus) bool {
		d := status.Downscale
		if scale.Locks && (d == nil || !scale.record.Equal(&d.At) || d.Zone != scale.Set.Name) {
			return false // there is another one since
		}
		if !scale.Locks && d != nil {
			return false // the guard settles it
		}
		if ring.IsConflict(why) {
			lock.Drop(status)
			return scale.Locks
		}
		now := a.options.Now()
		r := v1alpha1.RefusedDownscale{
			Zone: scale.Set.Name, UID: scale.Set.UID, From: int32(scale.From), To: int32(scale.To), //nolint:gosec // replicas
			At: metav1.NewMicroTime(now), Message: why.Error(),
		}
		lock.Refuse(status, r, false)
		noted := &status.RefusedDownscales[len(status.RefusedDownscales)-1]
		noted.RetryAt = new(metav1.NewMicroTime(now.Add(ring.Refused().After(int(noted.Attempts)))))
		return true
	})
}

// lock takes the lock for a downscale that no guard prepares, if no client has written the
// group since it was seen: what it was decided from is in its status.
func (a *actor) lock(ctx context.Context, s *snapshot, scale *Scale) error {
	// As it comes back from the status.
	now := metav1.NewMicroTime(a.options.Now().Truncate(time.Microsecond))
	d := v1alpha1.Downscale{
		Zone: scale.Set.Name, UID: scale.Set.UID, From: int32(scale.From), To: int32(scale.To), //nolint:gosec // replicas
		At: now, AdmittedAt: &now, ResourceVersion: scale.Set.ResourceVersion,
	}
	group := s.group.DeepCopy()
	if before := group.Status.Downscale; before == nil { // otherwise one of a manager before this one may still be written
		scale.record = &d.At
	}
	if scale.TakesBack {
		lock.TakeBack(&group.Status, d)
	} else {
		lock.TakeForDownscale(&group.Status, d)
	}
	lock.See(&group.Status, s.asOf)
	return a.keeper.Write(ctx, group)
}
