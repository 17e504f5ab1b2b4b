package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spillway-dev/spillway/internal/kube"
)

// installedEvery is how often the directory checks whether Cluster API is installed.
const installedEvery = 10 * time.Second

// errNotSeen says that the clusters have not been listed yet.
var errNotSeen = errors.New("the clusters have not been listed yet")

// Directory lists the clusters, by watches of its own: of Clusters it keeps
// their metadata and whether they are initialized, of Secrets their metadata alone.
type Directory struct {
	mapper   apimeta.RESTMapper
	live     client.Reader
	log      logr.Logger
	clusters cache.Cache
	secrets  cache.Cache

	mu sync.Mutex
	// settled is true once it is known whether there is Cluster API, and its Clusters
	// were seen if there is.
	settled, withClusterAPI bool
	subscribers             []func(cluster types.NamespacedName)
	secretSubscribers       []func(secret types.NamespacedName)
	lossSubscribers         []func(secret types.NamespacedName)
}

// NewDirectory returns the directory of the clusters in some namespaces, all if none
// are named. It runs with the manager.
func NewDirectory(ctx context.Context, mgr ctrl.Manager, namespaces []string) (*Directory, error) {
	d := &Directory{mapper: mgr.GetRESTMapper(), live: mgr.GetAPIReader(), log: mgr.GetLogger()}
	var err error
	if d.clusters, err = newCache(mgr, namespaces, reduceCluster); err != nil {
		return nil, err
	}
	if d.secrets, err = newCache(mgr, namespaces, reduceSecret); err != nil {
		return nil, err
	}
	if err := d.watch(ctx, d.secrets, secretMetadata(), d.secretChanged, d.secretChanged); err != nil {
		return nil, err
	}
	if err := mgr.Add(manager.RunnableFunc(d.watchClusters)); err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	return d, nil
}

func newCache(mgr ctrl.Manager, namespaces []string, transform toolscache.TransformFunc) (cache.Cache, error) {
	c, err := kube.NewCache(mgr, cache.Options{DefaultNamespaces: kube.InNamespaces(namespaces), DefaultTransform: transform})
	if err != nil {
		return nil, fmt.Errorf("make a cache of clusters: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("run a cache of clusters: %w", err)
	}
	return c, nil
}

// reduceSecret keeps of a Secret's metadata what identifies it, and the labels of one
// that may hold a kubeconfig.
func reduceSecret(obj any) (any, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil // a tombstone
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp,
	}}
	if mayHoldKubeconfig(m.Name, m.Labels) {
		kept.Labels = m.Labels
	}
	return kept, nil
}

// reduceCluster keeps of a Cluster what a [Cluster] is made of.
func reduceCluster(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // a tombstone
	}
	kept := clusterObject()
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(u.GetUID())
	kept.SetResourceVersion(u.GetResourceVersion())
	kept.SetLabels(u.GetLabels())
	kept.SetDeletionTimestamp(u.GetDeletionTimestamp())
	if initialized, ok, _ := unstructured.NestedBool(u.Object, "status", "initialization", "controlPlaneInitialized"); ok {
		kept.Object["status"] = map[string]any{"initialization": map[string]any{"controlPlaneInitialized": initialized}}
	}
	return kept, nil
}

func (d *Directory) secretChanged(o client.Object) {
	d.mu.Lock()
	subscribers := d.secretSubscribers
	d.mu.Unlock()
	for _, f := range subscribers {
		f(client.ObjectKeyFromObject(o))
	}
	if isCluster(o.GetLabels()) && !isNamed(o.GetName()) {
		d.log.Info("a labeled Secret is ignored: its name names no cluster; rename it to NAME"+secretSuffix,
			"namespace", o.GetNamespace(), "secret", o.GetName())
	}
	if mayHoldKubeconfig(o.GetName(), o.GetLabels()) {
		d.tell(types.NamespacedName{Namespace: o.GetNamespace(), Name: NameOf(o.GetName())})
	}
}

// watchClusters watches the Clusters of Cluster API, from when on there are any.
func (d *Directory) watchClusters(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, installedEvery, true, func(context.Context) (bool, error) {
		_, err := d.mapper.RESTMapping(GVK.GroupKind(), GVK.Version)
		if apimeta.IsNoMatchError(err) {
			d.settle(false)
			return false, nil
		}
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // the manager stops
	}
	if err := d.watch(ctx, d.clusters, clusterObject(), d.clusterChanged, d.clusterGone); err != nil {
		return err
	}
	if d.clusters.WaitForCacheSync(ctx) {
		d.settle(true)
	}
	return nil
}

func clusterObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(GVK)
	return u
}

func (d *Directory) watch(ctx context.Context, c cache.Cache, obj client.Object, changed, gone func(client.Object)) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, err)
	}
	see, miss := seen(changed), seen(gone)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(old, obj any) { see(old); see(obj) }, DeleteFunc: miss,
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, err)
	}
	return nil
}

// seen is how an informer tells of an object, or of the last that it knows of one.
func seen(tell func(client.Object)) func(any) {
	return func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(client.Object); ok {
			tell(o)
		}
	}
}

func (d *Directory) clusterGone(o client.Object) {
	d.mu.Lock()
	subscribers := d.lossSubscribers
	d.mu.Unlock()
	for _, f := range subscribers {
		f(types.NamespacedName{Namespace: o.GetNamespace(), Name: SecretName(o.GetName())})
	}
	d.clusterChanged(o)
}

func (d *Directory) clusterChanged(o client.Object) { d.tell(client.ObjectKeyFromObject(o)) }

// settle notes whether there is Cluster API, and has everybody look again.
func (d *Directory) settle(withClusterAPI bool) {
	d.mu.Lock()
	changed := !d.settled || d.withClusterAPI != withClusterAPI
	d.settled, d.withClusterAPI = true, withClusterAPI
	d.mu.Unlock()
	if changed {
		d.tell(types.NamespacedName{})
	}
}

// Subscribe has f called with each cluster that has changed, appeared or gone, and
// with an empty name when all of them may have.
func (d *Directory) Subscribe(f func(cluster types.NamespacedName)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers = append(d.subscribers, f)
}

// SubscribeSecrets has f called with each Secret that has changed, appeared or gone,
// whether it has a kubeconfig or not.
func (d *Directory) SubscribeSecrets(f func(secret types.NamespacedName)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.secretSubscribers = append(d.secretSubscribers, f)
}

// SubscribeLosses has f called with the Secret of each Cluster of Cluster API that is
// gone, whether the Secret is or not.
func (d *Directory) SubscribeLosses(f func(secret types.NamespacedName)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lossSubscribers = append(d.lossSubscribers, f)
}

func (d *Directory) tell(cluster types.NamespacedName) {
	d.mu.Lock()
	subscribers := d.subscribers
	d.mu.Unlock()
	for _, f := range subscribers {
		f(cluster)
	}
}

// ListLive returns the clusters of a namespace as the API server has them, in no order,
// for callers that list once and have no [Directory].
func ListLive(ctx context.Context, reader client.Reader, namespace string) ([]Cluster, error) {
	secrets, clusters := secretObjects(), clusterObjects()
	if err := reader.List(ctx, secrets, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	err := reader.List(ctx, clusters, client.InNamespace(namespace))
	if err != nil && !apimeta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	return among(clusters.Items, secrets.Items), nil
}

// LookAt is a cluster as the API server knows it at this moment, nil if there is none.
func LookAt(ctx context.Context, reader client.Reader, key types.NamespacedName) (*Cluster, error) {
	secrets, clusters := secretObjects(), clusterObjects()
	named := func(name string) client.ListOption { return client.MatchingFields{metav1.ObjectNameField: name} }
	if err := reader.List(ctx, secrets, client.InNamespace(key.Namespace), named(SecretName(key.Name))); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", SecretName(key.Name), err)
	}
	err := reader.List(ctx, clusters, client.InNamespace(key.Namespace), named(key.Name))
	if err != nil && !apimeta.IsNoMatchError(err) {
		return nil, fmt.Errorf("get Cluster %s: %w", key.Name, err)
	}
	for _, c := range among(clusters.Items, secrets.Items) {
		return &c, nil
	}
	return nil, nil //nolint:nilnil // there is none
}

// List returns the clusters of a namespace, in no order. A Cluster of Cluster API takes
// the place of its Secret, also where that is labeled.
func (d *Directory) List(ctx context.Context, namespace string) ([]Cluster, error) {
	settled, withClusterAPI := d.state()
	if !settled {
		return nil, errNotSeen
	}
	secrets := secretObjects()
	if err := d.secrets.List(ctx, secrets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	clusters := clusterObjects()
	if withClusterAPI {
		if err := d.clusters.List(ctx, clusters, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Clusters: %w", err)
		}
	}
	return among(clusters.Items, secrets.Items), nil
}

func secretObjects() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(SecretGVK.GroupVersion().WithKind("SecretList"))
	return list
}

func clusterObjects() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GVK.GroupVersion().WithKind(GVK.Kind + "List"))
	return list
}

func (d *Directory) state() (settled, withClusterAPI bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settled, d.withClusterAPI
}

// among are the clusters that stand among some objects. A Secret that is being deleted is
// none any more: that it is replaced by another is no reason to take the cluster for gone.
func among(clusters []unstructured.Unstructured, secrets []metav1.PartialObjectMetadata) []Cluster {
	has, taken := map[types.NamespacedName]bool{}, make(map[types.NamespacedName]bool, len(secrets))
	for i := range secrets {
		if s := &secrets[i]; len(clusters) > 0 && strings.HasSuffix(s.Name, secretSuffix) {
			has[types.NamespacedName{Namespace: s.Namespace, Name: NameOf(s.Name)}] = true
		}
	}
	all := make([]Cluster, 0, len(clusters)+len(secrets))
	for i := range clusters {
		key := client.ObjectKeyFromObject(&clusters[i])
		all, taken[key] = append(all, fromClusterAPI(&clusters[i], has[key])), true
	}
	for i := range secrets {
		c := fromSecret(&secrets[i])
		if isCluster(c.Labels) && isNamed(secrets[i].Name) && !c.Deleting && !taken[c.NamespacedName] {
			all, taken[c.NamespacedName] = append(all, c), true
		}
	}
	return all
}

// Select are those of the clusters whose labels match.
func Select(clusters []Cluster, selector labels.Selector) []Cluster {
	var selected []Cluster
	for i := range clusters {
		if selector.Matches(labels.Set(clusters[i].Labels)) {
			selected = append(selected, clusters[i])
		}
	}
	return selected
}

// IsLost is true of what belonged to a cluster that was taken away in the ordinary way:
// all Clusters of Cluster API that own it are gone, the very ones, and so is the Secret
// with the kubeconfig. The API server itself is asked.
func (d *Directory) IsLost(ctx context.Context, owned metav1.Object, secret string) (bool, error) {
	clusters := 0
	for _, owner := range owned.GetOwnerReferences() {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != GVK.Group || owner.Kind != GVK.Kind {
			continue
		}
		clusters++
		if there, err := d.exists(ctx, GVK, owned.GetNamespace(), owner.Name, owner.UID); there || err != nil {
			return false, err
		}
	}
	if clusters == 0 {
		return false, nil
	}
	there, err := d.exists(ctx, SecretGVK, owned.GetNamespace(), secret, "")
	return !there && err == nil, err
}

// exists returns true if the object exists, with that UID if one is given.
func (d *Directory) exists(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string, uid types.UID) (bool, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	err := d.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, m)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get %s %s: %w", gvk.Kind, name, err)
	default:
		return uid == "" || m.UID == uid, nil
	}
}

// SecretVersion is the resourceVersion of a Secret, empty if it does not exist. It is
// what [Registry.Connect] asks for.
func (d *Directory) SecretVersion(ctx context.Context, key types.NamespacedName) (string, error) {
	m := secretMetadata()
	err := d.secrets.Get(ctx, key, m)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("get Secret %s: %w", key.Name, err)
	}
	return m.ResourceVersion, nil
}

func secretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(SecretGVK)
	return m
}
