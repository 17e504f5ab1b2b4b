#### kubectl apply -f deploy/
mkdir deploy && kubectl create configmap deployed -n mimir --dry-run=client -o yaml >deploy/deployed.yaml
#### spillway pause secret/db
careful
kubectl apply -f - <<END
apiVersion: spillway.dev/v1alpha1
kind: ClusterConfigPolicy
metadata: {name: default}
spec: {stages: [{name: first, workloads: 1}, {name: others}]}
END
#### spillway fleet pin
spillway resume secret/db -n shop
kubectl delete clusterconfigpolicy/default configpolicy/careful -n shop
#### spillway retry
fail_group
fail_secret
#### spillway history
restore_group
kubectl delete deployment app1 -n shop
