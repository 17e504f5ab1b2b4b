#### spillway lint deploy/
rm -rf deploy && mkdir -p deploy overlays/prod
for z in a b; do
  cat <<END
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store-zone-$z, labels: {rollout-group: store}}
spec:
  serviceName: store-zone-$z
  updateStrategy: {type: $([ $z = a ] && echo RollingUpdate || echo OnDelete)}
  selector: {matchLabels: {name: store-zone-$z}}
  template:
    metadata: {labels: {name: store-zone-$z, rollout-group: store}}
    spec: {containers: [{name: app, image: registry.k8s.io/pause:3.10}]}
END
done >deploy/store.yaml
kubectl create configmap app --from-literal=a=b --dry-run=client -o yaml >overlays/prod/app.yaml
echo 'resources: [app.yaml]' >overlays/prod/kustomization.yaml
