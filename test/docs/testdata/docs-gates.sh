#### spillway approve rolloutgroup/ingester
kubectl patch rolloutgroup ingester -n mimir --type=merge -p '{"spec":{"gates":[{"name":"review"}]}}'
kubectl patch statefulset ingester-zone-a -n mimir --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"yes"}}}}}'
explains 'gate review' rolloutgroup/ingester -n mimir
spillway package install examples/packages/greeter db -n shop --wait
kubectl annotate instance db -n shop spillway.dev/gates='[{plan: update, when: Before, name: approve}]'
spillway package update instance/db -n shop -p REPLICAS=3
explains 'gate approve' instance/db -n shop
#### json.errors
kubectl apply -f - <<END
apiVersion: spillway.dev/v1alpha1
kind: GateTemplate
metadata: {name: status, namespace: shop}
spec: {http: {url: https://status.example.com}}
END
#### kubectl create role gate-jobs
restore_group
#### kubectl annotate secret prometheus-access
kubectl create secret generic prometheus-access -n mimir --from-literal=token=x
