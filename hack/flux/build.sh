#!/usr/bin/env bash
# Builds Flux's kustomize-controller and helm-controller from their Go modules, and lays
# beside them, in the folder crds, the kinds that the fleet is tested with: those of Flux's
# controllers and source-controller, and Cluster API's Cluster. All of it
# goes into a cache outside the work tree. The last line of the output is the
# folder, and the only one on standard output: progress goes to standard error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Of these modules only files are taken; what they would need to be built is not
# downloaded. source-controller cannot be built from modules: its main module
# replaces what has no published version.
sources=github.com/fluxcd/source-controller@v1.9.6 # that of the API in go.mod
clusters=sigs.k8s.io/cluster-api@v1.14.2

controller=github.com/fluxcd/kustomize-controller
version=$(go list -m -f '{{.Version}}' "$controller")
helm=github.com/fluxcd/helm-controller
helm_version=$(cd helm && go list -m -f '{{.Version}}' "$helm")
key=$(cat go.mod go.sum helm/go.mod helm/go.sum build.sh | sha256sum | cut -c1-12)
cache=${SPILLWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spillway}/flux
folder=$cache/$version-$(go env GOOS)-$(go env GOARCH)-$key

# Finding it built takes no lock and no compiler.
if [ -d "$folder" ]; then
  echo "$folder"
  exit
fi

mkdir -p "$cache"
if command -v flock >/dev/null; then
  exec 9>"$cache/.lock"
  flock 9
  if [ -d "$folder" ]; then # another process has built it while we waited
    echo "$folder"
    exit
  fi
fi

# The build runs beside the folder, which appears only when it is complete.
build=$(mktemp -d "$cache/.building-XXXXXX")
trap 'chmod -R u+w "$build"; rm -rf "$build"' EXIT

module() { # MODULE@VERSION: its folder, checked against the checksum database
  go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

crds() { # FOLDER FILE...
  local from=$1
  shift
  for file in "$@"; do install -m 644 "$from/$file" "$build/crds/"; done
}

mkdir "$build/crds"
crds "$(module "$controller@$version")/config/crd/bases" kustomize.toolkit.fluxcd.io_kustomizations.yaml
crds "$(module "$sources")/config/crd/bases" source.toolkit.fluxcd.io_gitrepositories.yaml source.toolkit.fluxcd.io_ocirepositories.yaml \
  source.toolkit.fluxcd.io_buckets.yaml source.toolkit.fluxcd.io_externalartifacts.yaml \
  source.toolkit.fluxcd.io_helmrepositories.yaml source.toolkit.fluxcd.io_helmcharts.yaml
crds "$(module "$helm@$helm_version")/config/crd/bases" helm.toolkit.fluxcd.io_helmreleases.yaml
crds "$(module "$clusters")/core/config/crd/bases" cluster.x-k8s.io_clusters.yaml

echo "building kustomize-controller $version, once (about three minutes on two cores)" >&2
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$build/kustomize-controller" "$controller" >&2
echo "building helm-controller $helm_version, once (about as long)" >&2
(cd helm && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$build/helm-controller" "$helm" >&2)

chmod 755 "$build"
mv "$build" "$folder"
trap - EXIT
echo "$folder"
