#!/usr/bin/env bash
# A rollout of one's own, for a Module with strategy External: its target revision goes
# to one cluster after another, and a cluster that fails ends it.
#
#   rollout.sh NAMESPACE MODULE CLUSTER...
#
# Spillway makes the ModuleRevision, carries out what is assigned, and says how it went.
# All that is left to do is to decide who is next, and to write it down: in the
# assemblage of the cluster, under a field owner of one's own, so that no other client's
# entries are touched.
set -euo pipefail
namespace=$1 module=$2
shift 2

revision=$(kubectl get module "$module" -n "$namespace" -o 'jsonpath={.status.targetRevision}')

of_revision() { # FIELD
  kubectl get modulerevision "$revision" -n "$namespace" -o "jsonpath={$1}"
}

# content is what the revision says, with the commit or the digest in place of its tag once
# a cluster has told what that is: a tag that moves would move the clusters that follow.
content() {
  local sync digest exact
  sync=$(of_revision .spec.template.sync) digest=$(of_revision .status.resolved)
  digest=${digest##*@}
  exact="\"revision\":\"${digest#*:}\""
  [[ $sync == *'"oci":{'* ]] && exact="\"digest\":\"$digest\""
  if [[ ${digest#*:} =~ ^([0-9a-f]{40}|[0-9a-f]{64})$ ]]; then
    sed -E "s|\"version\":\{\"tag\":\"[^\"]*\"\}|\"version\":{$exact}|" <<<"$sync"
  else
    echo "$sync"
  fi
}

assign() { # CLUSTER
  local sync bindings
  sync=$(content) bindings=$(of_revision .spec.template.controlPlaneBindings)
  kubectl apply --server-side --field-manager=my-rollout -f - <<YAML
apiVersion: fleet.squaremo.dev/v1alpha1
kind: ProxyAssemblage
metadata: {name: $1, namespace: $namespace}
spec:
  kubeconfigRef: {name: $1-kubeconfig}
  assemblage:
    syncs: [{"name": "$module", "revision": "$revision", "assignedAt": "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)",
      "controlPlaneBindings": ${bindings:-[]}, ${sync#\{}]
YAML
}

# report waits until what was assigned is complete, and prints how: a report with
# another moment is of an older assignment, and says nothing about this one.
report() { # CLUSTER
  local sync="?(@.name=='$module')" said
  until said=$(kubectl get proxyassemblage "$1" -n "$namespace" -o \
    "jsonpath={.spec.assemblage.syncs[$sync].assignedAt} {.status.syncs[$sync].assignedAt} {.status.syncs[$sync].state}") &&
    read -r assigned reported state <<<"$said" && [[ $assigned == "$reported" && $state == @(succeeded|failed) ]]; do
    kubectl wait proxyassemblage "$1" -n "$namespace" --for=condition=Ready --timeout=5s >/dev/null 2>&1 || true
  done
  echo "$state"
}

for cluster in "$@"; do
  assign "$cluster"
  state=$(report "$cluster")
  echo "$cluster has $state at $revision"
  [[ $state == succeeded ]]
done
