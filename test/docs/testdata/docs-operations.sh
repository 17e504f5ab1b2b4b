#### spillway install --values=values.yaml
echo 'replicas: 3' >values.yaml
