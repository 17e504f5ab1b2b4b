#### kubectl get gate -n clusters
gate=$(kubectl get rolloutgates -n clusters -o name)
stands shop-1f0c2b7a9e-canary-5d1be7a6f0 "${gate#*/}"
#### spillway fleet approve shop -n clusters --remove=12
kubectl patch module shop -n clusters --type=merge -p '{"spec":{"strategy":"Replace"}}'
for c in c1 c2 c7; do
  until kubectl get proxyassemblage $c -n clusters; do sleep 0.5; done
done
kubectl patch module shop -n clusters --type=merge -p '{"spec":{"selector":{"matchLabels":{"env":"none"}}}}'
explains 'remove=3' module/shop -n clusters
stands --remove=12 --remove=3
#### kubectl annotate proxyassemblage
kubectl patch module shop -n clusters --type=merge -p '{"spec":{"selector":{"matchLabels":{"env":"prod"}}}}'
kubectl apply -f - <<END
apiVersion: fleet.squaremo.dev/v1alpha1
kind: BootstrapModule
metadata: {name: flux, namespace: clusters}
spec: {selector: {}, sync: {source: {git: {url: "https://example.com/flux", version: {tag: v1}}}}}
END
until kubectl get proxyassemblage,remoteassemblage c1 -n clusters; do sleep 0.5; done
