#### filter: sev
kubectl apply -f - <<END
apiVersion: spillway.dev/v1alpha1
kind: Notifier
metadata: {name: channel, namespace: mimir}
spec: {chat: {format: Slack}, secretRef: {name: channel}}
END
#### silence: true
kubectl apply -f - <<END
apiVersion: spillway.dev/v1alpha1
kind: Notifier
metadata: {name: alerts, namespace: mimir}
spec: {alertmanager: {}, secretRef: {name: channel}}
END
