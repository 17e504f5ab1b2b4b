package explain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployment is one with a Pod of the application of its name. The rest is YAML of the
// Pod's spec, and of the container if it begins with "container:".
func deployment(name string, parts ...string) string { return workload("Deployment", name, parts...) }

// workload writes a manifest. Parts are "annotation: k: v", "label: k: v", "pod: k: v"
// for annotations of the template, "container: YAML", "spec: YAML"; anything else is
// YAML of the Pod's spec.
func workload(kind, name string, parts ...string) string {
	lines := map[string][]string{}
	for _, part := range parts {
		where, rest, ok := strings.Cut(part, ": ")
		if !ok || !slices.Contains([]string{"annotation", "label", "pod", "container", "spec"}, where) {
			where, rest = "", part
		}
		lines[where] = append(lines[where], rest)
	}
	flow := func(where string) string { return strings.Join(lines[where], ", ") }
	block := func(where, indent string) string {
		text := ""
		for _, line := range lines[where] {
			text += "\n" + indent + line
		}
		return text
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {%s}, labels: {%s}}
spec:
  selector: {matchLabels: {app: %s}}%s
  template:
    metadata: {labels: {app: %s}, annotations: {%s}}
    spec:
      containers:
      - name: app
        image: app:v1%s%s
`, kind, name, flow("annotation"), flow("label"), name, block("spec", "  "), name, flow("pod"), block("container", "        "), block("", "      "))
}

const (
	// still keeps kwok from doing anything with a Pod once it is on its node.
	still      = `pod: testenv.spillway.dev/behavior: still`
	neverReady = `pod: testenv.spillway.dev/behavior: never-ready`
	crash      = `pod: testenv.spillway.dev/behavior: crash`
	needsDB    = `container: env: [{name: P, valueFrom: {secretKeyRef: {name: db, key: password}}}]`
)

// waiting has the container of Pods wait for a reason.
func waiting(app, reason, message string) func(*world) {
	return func(w *world) {
		w.pods(app, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", Image: "app:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			}}
		})
	}
}

func killed(app, reason string, code int32) func(*world) {
	return func(w *world) {
		w.pods(app, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", Image: "app:v1", RestartCount: 7,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}},
			}}
		})
	}
}

// restarted has the container of Pods run since a while ago, when it had ended.
func restarted(app string, ago time.Duration) func(*world) {
	return func(w *world) {
		w.pods(app, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", Image: "app:v1", RestartCount: 1,
				State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-ago))}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}},
			}}
		})
	}
}

// replaced waits until another Pod is on its node in the place of one that has failed, and
// does with it.
func (w *world) replaced(app string, do func(*corev1.Pod)) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		var list corev1.PodList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodFailed && p.Spec.NodeName != "" })
		if i < 0 {
			return fmt.Errorf("none of %d Pods is new and on a node", len(list.Items))
		}
		do(&list.Items[i])
		return w.client.Status().Update(ctx, &list.Items[i])
	})
}

// noPods is a quota that lets no Pod be made.
const noPods = `apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {pods: "0"}}
---
`

// told waits until an Event has told of something.
func (w *world) told(reason string) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		var list corev1.EventList
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == reason }) {
			return fmt.Errorf("no Event says %s", reason)
		}
		return nil
	})
}

func (w *world) delete(obj client.Object) {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// refusing waits until the API server refuses Pods with some words, and then applies
// manifests.
func refusing(words, docs string) func(*world) {
	return func(w *world) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe"}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
		w.eventually(func(ctx context.Context) error {
			if err := w.client.Create(ctx, pod.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), words) {
				return fmt.Errorf("it is not refused yet: %w", err)
			}
			return nil
		})
		w.apply(docs)
	}
}

// lateClass is a claim for which nothing is provisioned before its Pod has a node.
const lateClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late-NS}
provisioner: acme.io/disk
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: late-NS, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
`

// podSituations are what can be wrong with a Pod, or keep one from being made.
var podSituations = []situation{{
	name: "no node has the labels", plant: deployment("web", "nodeSelector: {disk: ssd}"),
	ask: "deploy/web", through: "Deployment Pod", root: "pod/web-*", says: "no node has the labels of its node selector, disk=ssd", next: "kubectl get nodes -l disk=ssd",
}, {
	name: "no node is large enough", plant: deployment("web", `container: resources: {requests: {cpu: 100k}}`),
	ask: "deploy/web", root: "pod/web-*", says: "Insufficient cpu", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "the storage class is missing", plant: `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: fast-NS, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
` + deployment("web", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
	ask: "deploy/web", through: "Deployment Pod PersistentVolumeClaim StorageClass", root: "storageclass/fast-NS", says: "not found", next: "kubectl get storageclasses",
}, {
	name: "a claim waits for its Pod, which no node can take", plant: lateClass + deployment("web", `container: resources: {requests: {cpu: 100k}}`, "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
	ask: "deploy/web", through: "Deployment Pod", root: "pod/web-*", says: "Insufficient cpu", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "a claim waits for its Pod, and is asked about", plant: lateClass + deployment("web", "nodeSelector: {disk: ssd}", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
	ask: "pvc/data", through: "PersistentVolumeClaim Pod", root: "pod/web-*", says: "no node has the labels of its node selector, disk=ssd", next: "kubectl get nodes -l disk=ssd",
}, {
	name: "a claim is not provisioned on the node that was chosen", plant: lateClass + deployment("web", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
	ask: "deploy/web", through: "Deployment Pod PersistentVolumeClaim", root: "persistentvolumeclaim/data", says: "is pending: no volume is bound to it", next: "kubectl describe persistentvolumeclaim/data -n NS",
}, {
	name: "the volume claim is missing", plant: deployment("web", "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"),
	ask: "deploy/web", root: "persistentvolumeclaim/data", says: "not found", next: "kubectl get pvc -n NS",
}, {
	name: "a scheduling gate of another project", plant: deployment("web", "schedulingGates: [{name: acme.io/quota}]"),
	ask: "deploy/web", root: "pod/web-*", says: "scheduling gate acme.io/quota", next: "kubectl get pod/NAME -n NS -o jsonpath='{.spec.schedulingGates}'",
}, {
	name: "the scheduler does not run", plant: deployment("web", "schedulerName: night-shift"),
	ask: "deploy/web", root: "pod/web-*", says: "scheduler night-shift has not processed it", next: "kubectl get pods -A | grep -e night-shift",
}, {
	name: "a key is missing", plant: `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {user: x}
---
` + deployment("web", still, needsDB), act: waiting("web", "CreateContainerConfigError", "couldn't find key password in Secret"),
	ask: "deploy/web", through: "Deployment Pod Secret", root: "secret/db", says: "Secret db has no key password",
	next: `kubectl patch secret/db -n NS --type=merge -p '{"stringData":{"password":"VALUE"}}'`,
}, {
	name: "a mounted Secret is missing", plant: deployment("web", still, "volumes: [{name: tls, secret: {secretName: tls}}]"),
	ask: "deploy/web", root: "secret/tls", says: "Secret tls not found", next: "kubectl create secret generic tls -n NS --from-literal=KEY=VALUE",
}, {
	name: "the image is missing", plant: deployment("web", still), act: waiting("web", "ImagePullBackOff", "not found"),
	ask: "deploy/web", root: "pod/web-*", says: "cannot pull the image app:v1 of container app: not found", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "the Secret for the registry is missing", plant: deployment("web", still, "imagePullSecrets: [{name: registry}]"), act: waiting("web", "ErrImagePull", "no basic auth credentials"),
	ask: "deploy/web", root: "secret/registry", says: "not found",
	next: "kubectl create secret docker-registry registry -n NS --docker-server=SERVER --docker-username=USER --docker-password=PASSWORD",
}, {
	name: "a container crashes", plant: deployment("web", crash),
	times: "since", owner: "replicaset/web-*", ask: "deploy/web", root: "pod/web-*", says: "container app exited with code 1, restarted 5 times", next: "kubectl logs pod/NAME -n NS -c app --previous",
}, {
	name: "a container uses too much memory", plant: deployment("web", still, "container: resources: {limits: {memory: 64Mi}}"), act: killed("web", "OOMKilled", 137),
	ask: "deploy/web", root: "pod/web-*", says: "more memory than its limit of 64Mi", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "the readiness probe fails", plant: deployment("web", neverReady, "container: readinessProbe: {httpGet: {path: /ready, port: 8080}}"),
	ask: "deploy/web", root: "pod/web-*", says: "readiness probe GET /ready on port 8080 fails", next: "kubectl logs pod/NAME -n NS -c app",
}, {
	name: "a readiness gate has not passed", plant: deployment("web", neverReady, "readinessGates: [{conditionType: acme.io/in-load-balancer}]"),
	ask: "deploy/web", root: "pod/web-*", says: "readiness gate acme.io/in-load-balancer", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "an init container fails", plant: deployment("web", still, "initContainers: [{name: migrate, image: x}]"),
	act: func(w *world) {
		w.pods("web", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: "migrate", RestartCount: 3, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}},
			}}
		})
	},
	ask: "deploy/web", root: "pod/web-*", says: "init container migrate exited with code 2", next: "kubectl logs pod/NAME -n NS -c migrate",
}, {
	name: "a finalizer keeps a Pod", plant: `apiVersion: v1
kind: Pod
metadata: {name: web, finalizers: [acme.io/drain]}
spec: {containers: [{name: app, image: x}]}
`, act: func(w *world) {
		w.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}})
	},
	times: "since", ask: "po/web", root: "pod/web", says: "finalizer acme.io/drain", next: "kubectl get pod/web -n NS -o jsonpath='{.metadata.finalizers}'",
}, {
	name: "the node is gone", plant: `apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {nodeName: lost-NS, containers: [{name: app, image: x}]}
`, ask: "pod/web", root: "node/lost-NS", says: "not found", next: "kubectl delete pod/web -n NS --force --grace-period=0",
}, {
	name: "a Pod was evicted", plant: `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {testenv.spillway.dev/behavior: still}}
spec: {containers: [{name: app, image: x}]}
`, act: func(w *world) {
		w.pods("web", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		})
	},
	ask: "pod/web", root: "pod/web", says: "The node was low on resource: memory", next: "kubectl describe node/node-*",
}, {
	name: "an evicted Pod lies beside the one that crashes", plant: deployment("web", still), act: func(w *world) {
		w.pods("web", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		})
		w.replaced("web", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", Image: "app:v1", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
			}}
		})
	},
	ask: "deploy/web", through: "Deployment Pod", root: "pod/web-*", says: "exited with code 3", next: "kubectl logs pod/NAME -n NS -c app --previous",
}, {
	name: "the node of a Pod was shut down", plant: `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {testenv.spillway.dev/behavior: still}}
spec: {containers: [{name: app, image: x}]}
`, act: func(w *world) {
		w.pods("web", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Terminated", "Pod was terminated in response to imminent node shutdown."
		})
	},
	ask: "pod/web", root: "pod/web", says: "Pod was terminated in response to imminent node shutdown", next: "kubectl describe pod/web -n NS",
}, {
	name: "the readiness probe fails, long after a restart", plant: deployment("web", still, "container: readinessProbe: {tcpSocket: {port: 8080}}"), act: restarted("web", time.Hour),
	ask: "deploy/web", root: "pod/web-*", says: "readiness probe of port 8080 fails", next: "kubectl logs pod/NAME -n NS -c app",
}, {
	name: "a container that was just restarted", plant: deployment("web", still, "container: readinessProbe: {tcpSocket: {port: 8080}}"), act: restarted("web", time.Second),
	ask: "deploy/web", root: "pod/web-*", says: "container app exited with code 2, restarted 1 times", next: "kubectl logs pod/NAME -n NS -c app --previous",
}, {
	name: "a quota was used up, and is not any more", plant: noPods + workload("StatefulSet", "web", "spec: replicas: 2", still),
	act: func(w *world) {
		w.told("FailedCreate")
		w.delete(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"}})
		w.pods("web", func(*corev1.Pod) {})
	},
	ask: "sts/web", through: "StatefulSet Pod", root: "pod/web-0", says: "is starting on node", next: "kubectl describe pod/web-0 -n NS",
}, {
	name: "a quota is used up", plant: noPods + deployment("web"),
	ask: "deploy/web", through: "Deployment ResourceQuota", root: "resourcequota/small", says: "0 of 0 pods", next: "kubectl describe resourcequota/small -n NS",
}, {
	name: "a quota is used up for a StatefulSet", plant: noPods + workload("StatefulSet", "web"),
	ask: "sts/web", root: "resourcequota/small", says: "0 of 0 pods", next: "kubectl describe resourcequota/small -n NS",
}, {
	name: "the account is missing", plant: deployment("web", "serviceAccountName: runner"),
	ask: "deploy/web", root: "serviceaccount/runner", says: "not found", next: "kubectl create serviceaccount runner -n NS",
}, {
	name: "a Pod without an account of its own is refused", plant: workload("StatefulSet", "web", "spec: replicas: 2", still),
	act: func(w *world) {
		w.pods("web", func(*corev1.Pod) {})
		set := &appsv1.StatefulSet{}
		if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "web"}, set); err != nil {
			w.t.Fatal(err)
		}
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}, Reason: "FailedCreate", LastTimestamp: metav1.NewTime(time.Now().Add(time.Minute)),
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Namespace: w.namespace, Name: "web", UID: set.UID},
			Message:        `create Pod web-1 failed error: pods "web-1" is forbidden: User "system:serviceaccount:kube-system:statefulset-controller" cannot set blockOwnerDeletion`,
		}
		if err := w.client.Create(w.t.Context(), event); err != nil {
			w.t.Fatal(err)
		}
	},
	ask: "sts/web", root: "statefulset/web", says: "the API server refuses it: create Pod web-1 failed", next: "kubectl describe statefulset/web -n NS",
}, {
	name: "a webhook is down", plant: `apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {selector: {app: hook}, ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook-NS}
webhooks:
- name: pods.acme.io
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  clientConfig: {service: {namespace: NS, name: hook}}
`, act: refusing("failed calling webhook", deployment("web")),
	ask: "deploy/web", through: "Deployment ValidatingWebhookConfiguration Service", root: "service/hook", says: "has no ready endpoint", next: "kubectl describe service/hook -n NS",
}, {
	name: "a policy says no", plant: `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: signed-NS}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  validations: [{expression: "false", message: the image is not signed}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: signed-NS}
spec: {policyName: signed-NS, validationActions: [Deny]}
`, act: refusing("is not signed", deployment("web")),
	ask: "deploy/web", root: "validatingadmissionpolicy/signed-NS", says: "the image is not signed", next: "kubectl describe validatingadmissionpolicy/signed-NS",
}, {
	name: "a Deployment is paused", plant: deployment("web", "spec: paused: true"),
	ask: "deployment/web", root: "deployment/web", says: "spec.paused is set", next: "kubectl rollout resume deployment/web -n NS",
}, {
	name: "a Job has failed", plant: `apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {testenv.spillway.dev/behavior: fail}}
    spec: {restartPolicy: Never, containers: [{name: app, image: x}]}
`, ask: "job/migrate", root: "pod/migrate-*", says: "container app exited with code 1", next: "kubectl logs pod/NAME -n NS -c app",
}, {
	name: "a Job is not complete", plant: stuckJob, act: func(w *world) {
		w.eventually(func(ctx context.Context) error {
			job := &batchv1.Job{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "migrate"}, job); err != nil {
				return err
			}
			if job.Status.Active != 1 || job.Status.StartTime == nil {
				return errors.New("it is not active yet")
			}
			return nil
		})
		w.pods("migrate", func(*corev1.Pod) {})
	},
	ask: "job/migrate", through: "Job Pod", by: "Job migrate is not complete: Job in progress", root: "pod/migrate-*", says: "is starting on node", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "a disruption budget of zero", plant: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: all}
spec: {minAvailable: 100%, selector: {matchLabels: {app: web}}}
---
` + deployment("web"), ask: "pdb/all", root: "poddisruptionbudget/all", says: "allows no disruption: 1 of 1 Pods are healthy, 1 must be", next: "kubectl describe poddisruptionbudget/all -n NS",
}, {
	name: "a kind of another project with the name of one of Kubernetes", plant: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: services.acme.io}
spec:
  group: acme.io
  names: {kind: Service, listKind: ServiceList, plural: services, singular: service}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {selector: {app: hook}, ports: [{port: 443}]}
`, act: func(w *world) {
		w.eventually(func(ctx context.Context) error {
			u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "it has no route"}}}}}
			u.SetAPIVersion("acme.io/v1")
			u.SetKind("Service")
			u.SetNamespace(w.namespace)
			u.SetName("hook")
			return client.IgnoreAlreadyExists(w.client.Create(ctx, u))
		})
	},
	ask: "services.acme.io/hook", through: "Service", root: "service/hook", says: "is not ready: it has no route", next: "kubectl describe service.acme.io/hook -n NS",
}, {
	name: "a user who may not read ReplicaSets gets the Pod", plant: deployment("web", still), sees: []string{"deployments.apps", "pods"},
	ask: "deploy/web", through: "Deployment Deployment Pod", by: "replicasets cannot be read", root: "pod/web-*", says: "is starting on node", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "a user who may not read Pods gets the Deployment", plant: deployment("web", still), sees: []string{"deployments.apps"},
	ask: "deploy/web", by: "Deployment web is not ready", root: "deployment/web", says: "pods cannot be read", next: "kubectl get pods -n NS",
}, {
	name: "a user who may not read workloads gets the Secret", plant: "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\n---\n" + deployment("web", still, needsDB), sees: []string{"secrets"},
	ask: "secret/db", by: "Secret db exists", root: "secret/db", says: "deployments cannot be read", next: "kubectl get deployments.apps -n NS",
}, {
	name: "who waits for a Secret", plant: deployment("web", still, needsDB),
	ask: "secret/db", root: "secret/db", says: "Secret db not found; Deployment web is waiting for it", next: "kubectl create secret generic db -n NS --from-literal=password=VALUE",
}}
