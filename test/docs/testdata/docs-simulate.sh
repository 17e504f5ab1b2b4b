#### new-image.yaml
kubectl get deployment web -n shop -o yaml | sed 's/pause:3.10/pause:3.11/' >new-image.yaml
