package proxy_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// TestEveryPermissionIsUsedAndNoOtherIsNeeded tells the story with nothing but the
// generated roles, and compares what was granted with what was asked for. What the
// controllers of modules need is used elsewhere.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.Rules([]string{manager.RingFleet})
	if err != nil {
		t.Fatal(err)
	}
	own, err := manifests.RulesOf("hub")
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	testenv.Grant(t, w.hub, w.namespace, user, rules)
	w.user = user
	w.onlyHub = true // what is done on the clusters takes other permissions
	w.manageWith(fault.New())
	tell(w)

	w.create(w.hub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "region"}, Data: map[string]string{"name": "eu"}})
	testenv.ApplyManifest(t, w.hub, fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: c0, namespace: %s}, spec: {controlPlaneEndpoint: {host: there, port: 1}}}`, w.namespace))
	bound := "controlPlaneBindings: [{name: A, objectFieldRef: {kind: ConfigMap, name: region, fieldPath: /data/name}}, " +
		"{name: B, objectFieldRef: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: $(CLUSTER_NAME), fieldPath: /spec/controlPlaneEndpoint/host}}]\n" +
		"package: {kustomize: {substitute: {where: $(A)-$(B)}}}"
	w.assign("c0", w.sync("shop", "v1", bound))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	w.data(0, map[string]string{"version": "v1", "where": "eu-there"})
	w.bootstrap("c0", fmt.Sprintf("name: bucket\nrevision: r\nsourceRef: {kind: Bucket, name: none}\n%s", bound))
	w.becomes(remote(), "c0", "r", v1alpha1.StateWaiting, "source not found")
	w.url = "oci://registry.test/" + w.namespace
	w.publish("v1")
	w.publish("v2")
	for _, tag := range []string{"v1", "v2"} {
		w.bootstrap("c0", fmt.Sprintf("name: oci\nrevision: oci-%s\nsource: {oci: {url: %q, version: {tag: %s}}}", tag, w.url, tag))
		w.becomes(remote(), "c0", "oci-"+tag, v1alpha1.StateSucceeded, "")
	}
	w.has(w.hub, 1, 0) // the sources of OCI are not counted
	w.url = "s3://s3.test/" + w.namespace
	for _, prefix := range []string{"v1", "v2"} {
		w.publish(prefix)
		w.bootstrap("c0", fmt.Sprintf("name: bucket\nrevision: bucket-%[2]s\nsource: {bucket: {endpoint: s3.test, bucketName: %[1]s, prefix: %[2]s}}", w.namespace, prefix))
		w.becomes(remote(), "c0", "bucket-"+prefix, v1alpha1.StateSucceeded, "")
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		w.publishChart(version)
		w.bootstrap("c0", w.chart(version))
		w.becomes(remote(), "c0", "chart-"+version, v1alpha1.StateSucceeded, "applied "+version)
		w.data(0, map[string]string{"version": version, "where": "c0"})
	}
	w.bootstrap("c0", fmt.Sprintf("name: bucket\nrevision: r\nsourceRef: {kind: Bucket, name: none}\n%s", bound))
	w.noCharts()
	w.join(1)
	for kind, obj := range map[string]client.Object{"ProxyAssemblage": proxied(), "RemoteAssemblage": remote()} {
		w.assignAs("spillway-module/x", kind, "c1", "{name: x, revision: r, source: {git: {url: 'https://git.test/none', version: {tag: v1}}}}")
		w.becomes(obj, "c1", "r", v1alpha1.StateWaiting, "")
		w.assignAs("spillway-module/x", kind, "c1")
		w.gone(w.hub, obj, "c1")
	}
	testenv.AllUsed(t, testenv.Permissions(own), w.faults.Requests)
	testenv.NoneElse(t, testenv.Permissions(rules), w.faults.Requests())
}
