package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/ops"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// recordName is the ConfigMap that says what the way back needs.
const recordName, recordKey = "spillway-migration", "record"

// record is what the way back needs. It is written before the first write that it undoes.
type record struct {
	Stopped  []found                      `json:"stopped"`
	Webhooks []*unstructured.Unstructured `json:"webhooks,omitempty"`
}

// remember writes the record, in the namespace of the manager, which it makes if there is none.
func (m *migration) remember(ctx context.Context, r *record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write down what the way back needs: %w", err)
	}
	if err := m.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", m.namespace, err)
	}
	err = m.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: recordName}, Data: map[string]string{recordKey: string(raw)}})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ConfigMap %s in namespace %s says that a change-over was made already: go back first with spillway migrate undo, or delete it if that one stays", recordName, m.namespace)
	}
	if err != nil {
		return fmt.Errorf("write down what the way back needs: %w", err)
	}
	return nil
}

// recall reads the record, nil if there is none.
func (m *migration) recall(ctx context.Context) (*record, error) {
	stored := &corev1.ConfigMap{}
	err := m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: recordName}, stored)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	r := &record{}
	if err == nil {
		err = json.Unmarshal([]byte(stored.Data[recordKey]), r)
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s in namespace %s: %w", recordName, m.namespace, err)
	}
	return r, nil
}

func (m *migration) get(ctx context.Context, f *found) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind(f.Kind)
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: f.Name}, u); err != nil {
		return nil, fmt.Errorf("get %s in namespace %s: %w", f.ref(), f.Namespace, err)
	}
	return u, nil
}

// scale sets the replicas of a former controller, if no other client has changed it meanwhile.
func (m *migration) scale(ctx context.Context, f *found, replicas int32) error {
	u, err := m.get(ctx, f)
	if err != nil {
		return err
	}
	if replicasOf(u) != replicas {
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, u.GetResourceVersion(), replicas)
		if err := m.client.Patch(ctx, u, client.RawPatch(client.Merge.Type(), []byte(patch))); err != nil {
			return fmt.Errorf("scale %s in namespace %s to %d: %w", f.ref(), f.Namespace, replicas, err)
		}
	}
	m.sayf("%s in namespace %s scaled to %d", f.ref(), f.Namespace, replicas)
	return nil
}

// every is how often the command looks while it waits for controllers of the cluster.
const every = time.Second

// stop scales the former controllers to zero and waits until none of their Pods is left, so that they can act no more.
func (m *migration) stop(ctx context.Context, all []found) error {
	for i := range all {
		if all[i].Kind == "DaemonSet" {
			return fmt.Errorf("%s in namespace %s cannot be scaled to zero: remove it by hand, and follow the other steps of spillway migrate", all[i].ref(), all[i].Namespace)
		}
		if err := m.scale(ctx, &all[i], 0); err != nil {
			return err
		}
	}
	for i := range all {
		err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
			alive, err := m.isAlive(ctx, &all[i])
			return !alive, err
		})
		if err != nil {
			return fmt.Errorf("wait until the Pods of %s in namespace %s are gone: %w", all[i].ref(), all[i].Namespace, err)
		}
	}
	return nil
}

// isAlive reports whether a former controller may act: it has replicas, or a Pod is left of it.
func (m *migration) isAlive(ctx context.Context, f *found) (bool, error) {
	u, err := m.get(ctx, f)
	if err != nil || replicasOf(u) > 0 {
		return err == nil, err
	}
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	pods, err := podsOf(ctx, m.client, u)
	return observed < u.GetGeneration() || len(pods) > 0, err
}

// removeWebhooks deletes configurations that call a former controller. They are in the record.
func (m *migration) removeWebhooks(ctx context.Context, hooks []*unstructured.Unstructured) error {
	for _, hook := range hooks {
		if err := m.client.Delete(ctx, hook.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", hook.GetKind(), hook.GetName(), err)
		}
		m.sayf("%s/%s deleted; the way back creates it again", strings.ToLower(hook.GetKind()), hook.GetName())
	}
	return nil
}

// webhooksToKeep are the configurations of the former controllers as they can be created again.
func webhooksToKeep(all []found, objects []*unstructured.Unstructured) (hooks []*unstructured.Unstructured) {
	for _, u := range objects {
		name := u.GetKind() + "/" + u.GetName()
		if !slices.ContainsFunc(all, func(f found) bool { return slices.Contains(f.Webhooks, name) }) {
			continue
		}
		kept := u.DeepCopy()
		kept.SetResourceVersion("")
		kept.SetUID("")
		kept.SetManagedFields(nil)
		unstructured.RemoveNestedField(kept.Object, "metadata", "creationTimestamp")
		hooks = append(hooks, kept)
	}
	return hooks
}

func (m *migration) install(ctx context.Context, all []found) error {
	if err := m.runs(ctx, ops.NewInstall(m.env), m.installArgs(all)...); err != nil {
		return fmt.Errorf("install the manager: %w", err)
	}
	return nil
}

func (m *migration) runs(ctx context.Context, cmd *cobra.Command, args ...string) error {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(m.cluster.Given(), args...))
	cmd.SetOut(m.out)
	cmd.SetErr(m.env.Err)
	return cmd.ExecuteContext(ctx) //nolint:wrapcheck // the caller wraps it
}

// leastBack is how long the way back may take, however short other waits are.
const leastBack = 2 * time.Minute

// back uninstalls the manager and lets the former controllers go on. It can be repeated: what is done already is not done again.
func (m *migration) back(ctx context.Context, r *record) error {
	if err := m.runs(ctx, ops.NewUninstall(m.env), "--namespace="+m.namespace, "--keep-instances", "--timeout="+max(m.timeout, leastBack).String()); err != nil {
		return fmt.Errorf("uninstall the manager: %w", err)
	}
	if err := m.releaseFleet(ctx, r.Stopped); err != nil {
		return err
	}
	for _, hook := range r.Webhooks {
		if err := m.client.Create(ctx, hook.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s again: %w", hook.GetKind(), hook.GetName(), err)
		}
		m.sayf("%s/%s created again", strings.ToLower(hook.GetKind()), hook.GetName())
	}
	for i := range r.Stopped {
		err := m.scale(ctx, &r.Stopped[i], r.Stopped[i].Replicas)
		if apierrors.IsNotFound(err) {
			m.sayf("%s in namespace %s is gone: install it again", r.Stopped[i].ref(), r.Stopped[i].Namespace)
			continue
		}
		if err != nil {
			return err
		}
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: recordName}}
	if err := m.client.Delete(ctx, stored); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s: %w", recordName, err)
	}
	return nil
}

// fleetKinds are those of fleeet, if a former controller is one of its programs.
func fleetKinds(all []found) []schema.GroupVersionKind {
	if !slices.ContainsFunc(all, func(f found) bool { return strings.HasPrefix(f.Controller, fleeet) }) {
		return nil
	}
	return slices.DeleteFunc(kinds(), func(k schema.GroupVersionKind) bool { return k.Group != v1alpha1.GroupVersion.Group })
}

// forgetStates removes from assemblages the states that fleeet has written, or the manager: the kind of neither accepts any
// write to an object that has those of the other. Both write them again.
func (m *migration) forgetStates(ctx context.Context, all []found) error {
	objects, err := objectsOf(ctx, m.client, fleetKinds(all))
	for _, u := range objects {
		if states, _, _ := unstructured.NestedSlice(u.Object, "status", "syncs"); len(states) == 0 {
			continue
		}
		forget := client.RawPatch(client.Merge.Type(), []byte(`{"status":{"syncs":null}}`))
		if err := m.client.Status().Patch(ctx, u, forget); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the states of %s %s in namespace %s: %w", u.GetKind(), u.GetName(), u.GetNamespace(), err)
		}
	}
	return err
}

// releaseFleet lets fleeet go on with what the manager has assigned. Modules and assemblages can be deleted without the manager.
// Its Kustomizations are deleted, and what they have applied stays: fleeet has Kustomizations of other names for that, and two
// would apply two versions of it.
func (m *migration) releaseFleet(ctx context.Context, all []found) error {
	of := fleetKinds(all)
	if len(of) == 0 {
		return nil
	}
	if err := m.forgetStates(ctx, all); err != nil {
		return err
	}
	objects, err := objectsOf(ctx, m.client, append(of, kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind)))
	if err != nil {
		return err
	}
	for _, u := range objects {
		if u.GetKind() == kustomizev1.KustomizationKind {
			err = m.orphan(ctx, u)
		} else {
			err = m.releaseFinalizers(ctx, u)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release %s %s in namespace %s: %w", u.GetKind(), u.GetName(), u.GetNamespace(), err)
		}
	}
	return nil
}

// orphan deletes a Kustomization that the manager has made of a sync, without what it has applied.
func (m *migration) orphan(ctx context.Context, u *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(u)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") || vocabulary.AppliedHash.Get(u.GetAnnotations()) == "" || u.GetDeletionTimestamp() != nil {
		return nil
	}
	policy := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"deletionPolicy":%q}}`, u.GetUID(), kustomizev1.DeletionPolicyOrphan)
	if err := m.client.Patch(ctx, u, client.RawPatch(client.Merge.Type(), []byte(policy))); err != nil {
		return err //nolint:wrapcheck // the caller wraps it
	}
	uid := u.GetUID()
	if err := m.client.Delete(ctx, u, client.Preconditions{UID: &uid}); err != nil {
		return err //nolint:wrapcheck // the caller wraps it
	}
	m.sayf("kustomization/%s in namespace %s deleted; what it has applied stays", u.GetName(), u.GetNamespace())
	return nil
}

// releaseFinalizers takes from a module or an assemblage what only the manager would.
func (m *migration) releaseFinalizers(ctx context.Context, u *unstructured.Unstructured) error {
	before := u.DeepCopy()
	if a, b := controllerutil.RemoveFinalizer(u, vocabulary.ModuleFinalizer), controllerutil.RemoveFinalizer(u, vocabulary.AssemblageFinalizer); !a && !b {
		return nil
	}
	return m.client.Patch(ctx, u, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})) //nolint:wrapcheck // the caller wraps it
}

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
