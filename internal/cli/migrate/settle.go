package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// unit is an object as it was at some time: what must not change unless a user wanted it.
type unit struct {
	// asked is what users ask for: a digest of the Pod template without what managers put there, or a generation.
	asked string
	// done is what managers have made of it: a digest of the whole Pod template, with when a Rollout is restarted, the run of a
	// plan, or an assignment.
	done string
	// revision counts the templates that a Deployment has had, also one that is taken back before the next look. It is empty
	// until the present template is counted.
	revision string
	// pods are the UIDs of those Pods of a StatefulSet that are up to date, and config the versions of config in
	// the namespace.
	pods   []types.UID
	config map[string]string
}

// state is all that the former controllers act on.
type state map[string]unit

// stateOf reads what the former controllers act on.
func (m *migration) stateOf(ctx context.Context, all []found) (state, error) {
	objects, err := objectsOf(ctx, m.client, rolledKinds())
	if err != nil {
		return nil, err
	}
	config, err := m.config(ctx)
	if err != nil {
		return nil, err
	}
	s := state{}
	for _, u := range objects {
		if !slices.ContainsFunc(all, func(f found) bool { return f.acts(u) }) {
			continue
		}
		is := unit{asked: fmt.Sprint(u.GetGeneration()), config: config[u.GetNamespace()], revision: revisionOf(u)}
		if isReloaded(u) {
			if is.asked, is.done, err = templates(u); err != nil {
				return nil, err
			}
			restartAt, _, _ := unstructured.NestedString(u.Object, "spec", "restartAt")
			is.done += restartAt // of a Rollout
			if is.pods, err = m.upToDate(ctx, u); err != nil {
				return nil, err
			}
		} else {
			is.done = planRuns(u)
		}
		s[strings.ToLower(u.GetKind())+"/"+u.GetName()+" in namespace "+u.GetNamespace()] = is
	}
	return s, nil
}

// revisionOf is the number of the present template of a Deployment, empty until it is counted.
func revisionOf(u *unstructured.Unstructured) string {
	if observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); observed < u.GetGeneration() {
		return ""
	}
	return u.GetAnnotations()["deployment.kubernetes.io/revision"]
}

// config are the versions of ConfigMaps and Secrets by namespace. Their contents are not read.
func (m *migration) config(ctx context.Context) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list := kube.MetadataList(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := m.client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if all[o.Namespace] == nil {
				all[o.Namespace] = map[string]string{}
			}
			all[o.Namespace][kind+"/"+o.Name] = o.ResourceVersion
		}
	}
	return all, nil
}

// templates are digests of the Pod template without what managers put there, and of all of it.
func templates(u *unstructured.Unstructured) (bare, whole string, err error) {
	raw, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	template := &corev1.PodTemplateSpec{}
	if err := toTyped(raw, template); err != nil {
		return "", "", fmt.Errorf("read the Pod template of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return workload.DigestOf(workload.BareTemplate(template)), workload.DigestOf(template), nil
}

// planRuns names the runs of all plans of an Instance.
func planRuns(u *unstructured.Unstructured) string {
	plans, _, _ := unstructured.NestedMap(u.Object, "status", "planStatus")
	var runs []string
	for name := range plans {
		run, _, _ := unstructured.NestedString(plans, name, "uid")
		runs = append(runs, name+"="+run)
	}
	slices.Sort(runs)
	return strings.Join(runs, ",")
}

// upToDate are the Pods of a StatefulSet that it has nothing left to do with.
func (m *migration) upToDate(ctx context.Context, u *unstructured.Unstructured) (uids []types.UID, err error) {
	revision, _, _ := unstructured.NestedString(u.Object, "status", "updateRevision")
	if u.GetKind() != "StatefulSet" || revision == "" {
		return nil, nil
	}
	pods, err := podsOf(ctx, m.client, u)
	for i := range pods {
		if pods[i].Labels[appsv1.StatefulSetRevisionLabel] == revision && pods[i].DeletionTimestamp == nil {
			uids = append(uids, pods[i].UID)
		}
	}
	return uids, err
}

// rolled names what the manager has rolled since before though nothing asked for it, empty if there is nothing. What was under
// way or missed when it was looked is expected, and what users have asked for since then.
func (a *answer) rolled(before, now state) string {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], now[name]
		looked, known := a.looked[name]
		object, _, _ := strings.Cut(name, " ")
		wanted := !known || is.asked != looked.asked || !maps.Equal(is.config, looked.config) || slices.ContainsFunc(a.Rolls, func(roll string) bool { return strings.Contains(roll, object+" ") })
		switch {
		case wanted:
		case is.done != was.done, was.revision != "" && is.revision != "" && is.revision != was.revision:
			return name + " was rolled"
		case slices.ContainsFunc(was.pods, func(uid types.UID) bool { return !slices.Contains(is.pods, uid) }):
			return "a Pod of " + name + " was replaced"
		}
	}
	return ""
}

// watch looks until the manager works and the time to settle is over. It returns early with an error if
// a former controller acts again, or anything rolls that no user has asked for.
func (m *migration) watch(ctx context.Context, a *answer, before state) error {
	deadline, settled := m.env.Now().Add(m.timeout), time.Time{}
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		if err := m.harmless(ctx, a, before); err != nil {
			return false, err
		}
		absent, err := m.absence(ctx, a.Found)
		at := m.env.Now()
		switch {
		case err != nil:
			return false, err
		case absent == "" && settled.IsZero():
			settled = at.Add(m.settle)
			m.sayf("the manager is at work; watching for %s", m.settle)
		case absent != "" && !at.Before(deadline):
			return false, fmt.Errorf("the manager did not begin to work within %s: %s", m.timeout, absent)
		}
		return absent == "" && !at.Before(settled), nil
	})
	return err //nolint:wrapcheck // it is from here
}

// harmless is an error if anything rolls that no user has asked for, or if a former controller acts again.
func (m *migration) harmless(ctx context.Context, a *answer, before state) error {
	now, err := m.stateOf(ctx, a.Found)
	if err != nil {
		return err
	}
	if what := a.rolled(before, now); what != "" {
		return errors.New(what + " though neither its template nor its config was changed")
	}
	for i := range a.Found {
		f := &a.Found[i]
		if alive, err := m.isAlive(ctx, f); err != nil || alive {
			return errors.Join(err, fmt.Errorf("%s in namespace %s was started again by another client: stop it there", f.ref(), f.Namespace))
		}
	}
	return nil
}

// absence says why no manager is at work where the former controllers were, empty if one is.
func (m *migration) absence(ctx context.Context, all []found) (string, error) {
	namespace := kube.OrAll(watched(all))[0]
	mgr, err := describe.ManagerOf(ctx, m.client, namespace)
	if err != nil {
		return "", err
	}
	if err := mgr.Look(ctx, m.client, m.env.Now()); err != nil {
		return "", err
	}
	return mgr.Absence(namespace), nil
}

// rolls are what the manager would do on the present state, by its own code.
func (m *migration) rolls(ctx context.Context, all []found) ([]string, error) {
	flags, err := m.ringFlags(append(switches(all), managerArgs(all)...))
	if err != nil {
		return nil, err
	}
	options, err := flags.Options(m.env.Now)
	if err != nil {
		return nil, err
	}
	version, err := m.cluster.ServerVersion()
	if err != nil {
		return nil, err
	}
	present, err := simulate.Present(ctx, m.client, "")
	if err != nil {
		return nil, err
	}
	namespaces := watched(all)
	options.Namespaces = namespaces
	went, err := simulate.Continue(ctx, simulate.Options{
		Now: m.env.Now(), Installed: m.client.RESTMapper(), Config: options, Nodes: 1, Version: version, Present: present, Readiness: world.Readiness{Default: world.DefaultReady},
	})
	if err != nil {
		return nil, fmt.Errorf("compute what the manager would do: %w", err)
	}
	var rolls []string
	mine := rings(all)
	for i := range went.Steps {
		if s := &went.Steps[i]; slices.Contains(mine, s.Ring) && (len(namespaces) == 0 || slices.Contains(namespaces, s.Namespace)) {
			rolls = append(rolls, fmt.Sprintf("%s in namespace %s", s, s.Namespace))
		}
	}
	return rolls, nil
}
