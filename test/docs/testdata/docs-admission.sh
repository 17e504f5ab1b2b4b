#### inject-rollout-operator-ca
kubectl apply -f - <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: mimir-rollout}
END
