package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

const (
	// undoTimeout is how long all Pods together must be told otherwise. Only so
	// much is taken: the manager that settles the downscale continues where this has ended.
	undoTimeout = 20 * time.Second
	// tries is how often the lock is tried to be taken when others are faster.
	tries = 8
)

// preparer lets a StatefulSet be scaled down when its group allows it and all Pods
// that go have been told.
type preparer struct {
	options  Options
	observer observer
	keeper   lock.Keeper
	caller   *preparehook.Caller
}

// removal is a downscale to prepare.
type removal struct {
	change

	set      *appsv1.StatefulSet
	group    string
	endpoint preparehook.Endpoint
}

// Handle answers one request.
func (p *preparer) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.DryRun != nil && *req.DryRun {
		return allow()
	}
	c, err := changeOf(&req)
	switch {
	case err != nil:
		return p.options.unknown(err.Error())
	case c.unclear():
		return p.options.unknown("old/new replicas is nil, allowing the change")
	case !c.lowers():
		return allow()
	}
	set, err := p.set(ctx, &c)
	if err != nil {
		return p.options.unknown(err.Error() + ", allowing the change")
	}
	if !c.isOf(set) {
		return deny(c.refused(replaced))
	}
	if c = c.of(set); !c.lowers() || vocabulary.PrepareDownscale.Get(set.Labels) != "true" {
		return allow()
	}
	r := removal{change: c, set: set, group: vocabulary.GroupOf(set.Labels, set.Annotations)}
	var missing string
	if r.endpoint, missing = preparehook.EndpointOf(set); missing != "" {
		return deny(r.refused(missing))
	}
	response := p.remove(ctx, &r)
	log.FromContext(ctx).Info("downscale", "statefulset", r.name, "namespace", r.namespace, "from", *r.from, "to", *r.to,
		"allowed", response.Allowed, "message", response.Result.Message)
	return response
}

// remove prepares a downscale, under the lock where the StatefulSet has a group.
func (p *preparer) remove(ctx context.Context, r *removal) admission.Response {
	if r.group == "" {
		return p.withoutLock(ctx, r)
	}
	d, pods, because := p.take(ctx, r)
	switch {
	case because != "":
		return deny(r.refused(because))
	case d.Unscheduled:
		response := allow()
		response.Result = &metav1.Status{Message: r.downscale() + " is allowed -- no node ever had the pods that go."}
		return response
	default:
		return p.underLock(ctx, r, d, pods)
	}
}

// take takes the lock, if the group allows the downscale. It returns what was written
// down, and where the Pods are that go; or why not.
func (p *preparer) take(ctx context.Context, r *removal) (*v1alpha1.Downscale, []preparehook.Target, string) {
	for range tries {
		g, because := p.groupOf(ctx, r)
		if because != "" {
			return nil, nil, because
		}
		now := p.options.Now()
		z := g.zone(r.name)
		if z == nil || z.set.UID != r.set.UID {
			return nil, nil, replaced
		}
		g.settle()
		v := decideDownscale(g, &r.change, now)
		if !v.allowed && !g.takesBack(z, &r.change) {
			return nil, nil, v.because
		}
		if because := p.unprepared(ctx, r, z); because != "" {
			return nil, nil, because
		}
		g.permit(&r.change, v.allowed, now)
		if err := p.keeper.Write(ctx, g.object); err == nil {
			return g.object.Status.Downscale, r.targets(p.options.ClusterDomain, z), ""
		} else if !apierrors.IsConflict(err) {
			log.FromContext(ctx).Error(err, "cannot acquire the lock", "group", r.group)
			return nil, nil, "the lock of group " + r.group + " could not be acquired"
		}
	}
	return nil, nil, "conflict with other clients for the lock of group " + r.group
}

// groupOf reads the group; or why it cannot be read.
func (p *preparer) groupOf(ctx context.Context, r *removal) (*group, string) {
	g, err := p.observer.group(ctx, r.namespace, r.group)
	switch {
	case errors.Is(err, errNoGroup):
		return nil, "the lock of group " + r.group + " cannot be acquired: " + err.Error()
	case err != nil:
		log.FromContext(ctx).Error(err, "cannot read the group", "group", r.group)
		return nil, "finding other statefulsets failed."
	default:
		return g, ""
	}
}

// permit writes a downscale down: with the lock, or as one that takes back what no node had.
func (g *group) permit(c *change, locks bool, now time.Time) {
	d := g.wanted(c)
	d.At = metav1.NewMicroTime(now)
	if locks {
		lock.TakeForDownscale(&g.object.Status, *d)
	} else {
		lock.TakeBack(&g.object.Status, *d)
	}
	lock.See(&g.object.Status, g.asOf)
}

// unprepared is why a replica that goes cannot be prepared, though it may have data;
// empty if there is none.
func (p *preparer) unprepared(ctx context.Context, r *removal, z *zone) string {
	const failed = "one or more pods failed to prepare for shutdown."
	why, err := preparehook.Unprepared(ctx, p.observer.live, z.set, z.pods, int(*r.from), int(*r.to))
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "cannot read the claims of a Pod")
		return failed + " " + err.Error()
	case why != "":
		return failed + " " + why
	default:
		return ""
	}
}

// underLock tells the Pods, and makes sure that the lock is held still.
func (p *preparer) underLock(ctx context.Context, r *removal, d *v1alpha1.Downscale, pods []preparehook.Target) admission.Response {
	key := client.ObjectKey{Namespace: r.namespace, Name: r.group}
	told, err := p.caller.CallAll(ctx, http.MethodPost, pods)
	because := "one or more pods failed to prepare for shutdown."
	if err == nil {
		because = "the lock of group " + r.group + " was lost"
		err = p.admit(ctx, key, d)
	}
	if err == nil {
		return prepared(r)
	}
	log.FromContext(ctx).Error(err, "downscale is not admitted", "statefulset", r.name)
	p.giveUp(ctx, key, d, told, because+" "+err.Error())
	return deny(r.refused(because))
}

// errLost says that another client has settled the downscale meanwhile.
var errLost = errors.New("the lock was lost")

// admit notes that the write is to come.
func (p *preparer) admit(ctx context.Context, key client.ObjectKey, d *v1alpha1.Downscale) error {
	admitted := false
	err := p.keeper.Change(ctx, key, func(s *v1alpha1.RolloutGroupStatus) bool {
		admitted = lock.Admit(s, d, p.options.Now())
		return admitted
	})
	if err == nil && !admitted {
		return errLost
	}
	return err
}

// giveUp tells the Pods otherwise, and gives the lock back; with a context that lives
// on when the request is over. Where an earlier attempt of the same downscale was
// admitted, its write may still come: then all stays as it is until that is settled.
func (p *preparer) giveUp(ctx context.Context, key client.ObjectKey, d *v1alpha1.Downscale, told []preparehook.Answer, because string) {
	if d.AdmittedAt != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	pending := !p.undo(ctx, told) // the scaling ring tries again
	err := p.keeper.Change(ctx, key, func(s *v1alpha1.RolloutGroupStatus) bool {
		held := lock.Holds(s, d)
		if held {
			now := metav1.NewMicroTime(p.options.Now())
			lock.Refuse(s, v1alpha1.RefusedDownscale{Zone: d.Zone, UID: d.UID, From: d.From, To: d.To, At: now, Message: because}, pending)
		}
		return held
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot release the lock; it expires automatically", "group", key.Name)
	}
}

// withoutLock prepares a StatefulSet that is in no group: no other zone is concerned,
// and there is nothing to write it down in.
func (p *preparer) withoutLock(ctx context.Context, r *removal) admission.Response {
	pods, _, err := p.observer.pods(ctx, r.set)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot read the Pods")
		return deny(r.refused("finding its pods failed."))
	}
	z := zone{set: r.set, pods: pods}
	if because := p.unprepared(ctx, r, &z); because != "" {
		return deny(r.refused(because))
	}
	targets := r.targets(p.options.ClusterDomain, &z)
	if told, err := p.caller.CallAll(ctx, http.MethodPost, targets); err != nil {
		log.FromContext(ctx).Error(err, "downscale is not admitted", "statefulset", r.name)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		p.undo(ctx, told)
		return deny(r.refused("one or more pods failed to prepare for shutdown."))
	}
	return prepared(r)
}

func prepared(r *removal) admission.Response {
	response := allow()
	response.Result = &metav1.Status{Message: r.downscale() + " is allowed -- all pods successfully prepared for shutdown."}
	return response
}

// undo tells Pods that they stay: all of them, in case one did not say what it did. It
// is true if those know that have, or may have, prepared themselves. Of one whose
// preparation was given up, and may still come, that is not known.
func (p *preparer) undo(ctx context.Context, told []preparehook.Answer) bool {
	targets := make([]preparehook.Target, len(told))
	for i := range told {
		targets[i] = told[i].Target
	}
	known := true
	for i, a := range p.caller.Call(ctx, http.MethodDelete, targets) {
		if a.Err != nil && told[i].MayCount() {
			log.FromContext(ctx).Error(a.Err, "cannot undo the preparation of a Pod", "pod", a.Target.Pod)
			known = false
		}
		known = known && !told[i].Pending
	}
	return known
}

func (r *removal) targets(domain string, z *zone) []preparehook.Target {
	return r.endpoint.Targets(r.namespace, domain, preparehook.Leaving(z.set, z.pods, *r.from, *r.to))
}

// replaced is why a downscale of an object is refused that does not exist any more.
const replaced = "the StatefulSet was replaced by another with the same name"

// set is the StatefulSet as it is now, which counts: neither its replicas nor where its
// Pods are called are what a request says.
func (p *preparer) set(ctx context.Context, c *change) (*appsv1.StatefulSet, error) {
	if c.resource != "statefulsets" {
		return nil, fmt.Errorf("unsupported resource %s", c.resource)
	}
	return p.observer.set(ctx, c.namespace, c.name)
}
