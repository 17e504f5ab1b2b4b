# What fixtures of pages are made with. NAME and GROUP are of objects, $1 and so on.

install_all() {
  spillway install --rings=config,zones,plans,fleet,assemblage --pin-namespaces=shop --webhooks=false --default-config-policy=false \
    --image=registry.example.com/spillway:mine "$@"
}

# stands FOR: on the page, the first word stands for the second.
stands() { echo "$1 $2" >>WORDS; }

deployment() { # NAME SECRET [ANNOTATIONS]
  kubectl apply -f - <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: shop, labels: {env: staging}, annotations: {spillway.dev/update-on-config-change: "true"${3-}}}
spec:
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec: {containers: [{name: app, image: registry.k8s.io/pause:3.10, envFrom: [{configMapRef: {name: shop}}, {secretRef: {name: $2}}]}]}
END
}

zone() { # NAME [GROUP [BEHAVIOR]]
  kubectl apply -f - <<END
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1, namespace: mimir, labels: {rollout-group: ${2-ingester}}}
spec:
  replicas: 2
  serviceName: $1
  podManagementPolicy: Parallel
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {name: $1}}
  template:
    metadata: {labels: {name: $1, rollout-group: ${2-ingester}}, annotations: {testenv.spillway.dev/behavior: ${3-}}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: app, image: registry.k8s.io/pause:3.10}]}
END
}

cluster() { # NAME CANARY
  kubectl create secret generic "$1-kubeconfig" -n clusters --from-file=value="$KUBECONFIG"
  kubectl label secret "$1-kubeconfig" -n clusters spillway.dev/cluster=true env=prod canary="$2"
}

make_world() {
  for namespace in shop mimir clusters kafka monitoring; do
    kubectl create namespace $namespace
  done
  install_all
  kubectl create configmap shop -n shop --from-literal=colors=plain
  kubectl create secret generic db -n shop --from-literal=password=one
  deployment checkout db
  deployment web db
  deployment mailer smtp
  for z in a b c; do
    zone ingester-zone-$z
  done
  for c in c1 c2 c7; do
    cluster $c "$([ $c = c1 ] && echo true || echo false)"
  done
  kubectl apply -f - <<END
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: shop, namespace: clusters}
spec:
  selector: {matchLabels: {env: prod}}
  strategy: Incremental
  rollout:
    stages: [{name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve, when: Before}]}, {name: rest}]
  template: {spec: {sync: {source: {git: {url: "https://example.com/shop", version: {tag: v1}}}}}}
END
}

# explains TEXT KIND/NAME: wait until the command explain says the text.
explains() {
  until spillway explain "$2" "${@:3}" | grep "$1" >/dev/null; do sleep 0.5; done
}

# A group whose rollout has failed, and the same again as it was.
fail_group() {
  kubectl patch rolloutgroup ingester -n mimir --type=merge -p '{"spec":{"progressDeadlineSeconds":1}}'
  kubectl patch statefulset ingester-zone-a -n mimir --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"testenv.spillway.dev/behavior":"never-ready"}}}}}'
  explains 'progress deadline' rolloutgroup/ingester -n mimir
}
restore_group() {
  kubectl patch rolloutgroup ingester -n mimir --type=merge -p '{"spec":{"progressDeadlineSeconds":null,"gates":null}}'
  kubectl patch statefulset ingester-zone-a -n mimir --type=merge -p '{"spec":{"template":{"metadata":{"annotations":null}}}}'
  spillway watch rolloutgroup/ingester -n mimir --timeout 2m
}

# A Secret with which a workload has failed: its new Pods crash.
fail_secret() {
  # The manager of these pages runs as another user than the one that was installed, and alone may record.
  kubectl delete validatingadmissionpolicybinding spillway-system.configrollouts.spillway.dev --ignore-not-found
  deployment app1 db
  explains 'is up to date' deployment/app1 -n shop
  kubectl rollout status deployment/app1 -n shop
  before=$(kubectl get pods -n shop -l app=app1 -o name)
  password "$RANDOM"
  until kubectl get configrollouts secret-db -n shop -o 'jsonpath={.failed}' | grep 1 >/dev/null; do # recorded
    for pod in $(kubectl get pods -n shop -l app=app1 -o name); do
      [[ $before == *$pod* ]] || crash "$pod"
    done
    sleep 0.5
  done
}

crash() { # POD
  kubectl patch "$1" -n shop --subresource=status -p '{"status":{
    "conditions":[{"type":"Ready","status":"False"}],
    "containerStatuses":[{"name":"app","image":"x","imageID":"","ready":false,"restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}' || true # it may be gone
}

password() { # VALUE
  kubectl create secret generic db -n shop --from-literal=password="$1" --dry-run=client -o yaml | kubectl apply -f -
}

careful() {
  kubectl apply -f - <<END
apiVersion: spillway.dev/v1alpha1
kind: ConfigPolicy
metadata: {name: careful, namespace: shop}
spec: {stages: [{name: first, workloads: 1}, {name: rest}]}
END
}

# await_world waits for the manager, and for what it makes of the world.
await_world() {
  until kubectl get lease spillway-manager -n spillway-system && kubectl get rolloutgates -n clusters -o name | grep shop; do sleep 0.5; done
  for name in checkout web; do
    explains 'is up to date' deployment/$name -n shop
  done
}
