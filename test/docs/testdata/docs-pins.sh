#### spillway history deployment/checkout
install_all --no-crds
for value in two three; do
  password $value
  explains 'is up to date' deployment/checkout -n shop
done
stands 9676b5e0aa "$(spillway history secret/db -n shop | sed -n 's/^content \([0-9a-f]*\) .*/\1/p' | tail -n 1)"
#### kubectl annotate cronjob nightly
kubectl create cronjob nightly -n shop --image=registry.k8s.io/pause:3.10 --schedule=@yearly
