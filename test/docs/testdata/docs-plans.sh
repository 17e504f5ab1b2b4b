#### kubectl apply -f package.yaml
install_all --no-crds
spillway package render examples/packages/greeter >package.yaml
cat >instance.yaml <<END
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: planned, namespace: shop}
spec: {operatorVersion: {name: greeter-1.27.0-0.1.0}}
END
stands NAME planned
#### parametersFrom
spillway package install examples/packages/greeter hello -n shop --wait
