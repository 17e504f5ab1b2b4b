#### spillway explain deployment/app2
deployment app2 db
#### spillway retry secret/db
fail_secret
#### kubectl annotate statefulset db
kubectl apply -f - <<END
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: app, image: registry.k8s.io/pause:3.10, envFrom: [{secretRef: {name: db}}]}]}
END
#### spillway pause configpolicy/careful
kubectl delete deployment app1 app2 -n shop
kubectl delete statefulset db -n shop
careful
