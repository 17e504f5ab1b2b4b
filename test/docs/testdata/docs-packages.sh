#### mkdir -p /tmp/packages
stands /tmp/ "$HOME/"
#### greeter-0.2.0.tgz
cp -r examples/packages/greeter newer
sed -i 's/operatorVersion: "*0.1.0"*/operatorVersion: 0.2.0/' newer/operator.yaml
spillway package create newer
#### kubectl-kudo
stands /tmp/ "$HOME/"
