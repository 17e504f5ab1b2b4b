#### kubectl delete mutatingwebhookconfiguration
kubectl apply -f - <<END
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kudo-manager-instance-admission-webhook-config}
END
#### kubectl annotate operatorversion
spillway package render examples/packages/greeter | sed 's/greeter-1.27.0-0.1.0/kafka-1.0.0/' | kubectl apply -n kafka -f -
