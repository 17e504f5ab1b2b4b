#### spillway pause rolloutgroup/ingester
fail_group
#### spillway install --webhook-host
restore_group
kubectl create service clusterip rollout-operator -n mimir --tcp=443:8443
