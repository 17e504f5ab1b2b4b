#!/usr/bin/env bash
# Builds the programs of a real node from Go modules: the kubelet, in the version of
# the control plane (hack/k8s), containerd with its shim and ctr, runc, and the CNI
# plugins that give a Pod an address. All of it goes into a cache outside the work
# tree. The last line of the output is the folder, and the only one on standard
# output: progress goes to standard error. It needs Linux and a C compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

containerd=github.com/containerd/containerd/v2@v2.4.2
runc=github.com/opencontainers/runc@v1.5.2
plugins=github.com/containernetworking/plugins@v1.10.0

kubernetes=$(awk '$1 == "k8s.io/kubernetes" {print $2; exit}' ../k8s/go.mod)
key=$(cat build.sh runc/main.go ../k8s/go.mod ../k8s/go.sum | sha256sum | cut -c1-12)
cache=${SPILLWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spillway}/node
folder=$cache/$kubernetes-$(go env GOOS)-$(go env GOARCH)-$key

# Finding it built takes no lock and no compiler.
if [ -d "$folder" ]; then
  echo "$folder"
  exit
fi

[ "$(go env GOOS)" = linux ] || { echo "a node runs on Linux only; name a cluster that you have: make test-node CLUSTER=KUBECONFIG" >&2; exit 1; }
command -v "${CC:-gcc}" >/dev/null || { echo "runc needs a C compiler, and ${CC:-gcc} was not found (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }

mkdir -p "$cache"
exec 8>"$cache/.lock"
flock 8
if [ -d "$folder" ]; then # another process has built it while we waited
  echo "$folder"
  exit
fi

# The build runs beside the folder, which appears only when it is complete.
build=$(mktemp -d "$cache/.building-XXXXXX")
trap 'chmod -R u+w "$build"; rm -rf "$build"' EXIT
mkdir "$build/cni"
export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0

module() { # MODULE@VERSION: its folder, checked against the checksum database
  go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

program() { # MODULE@VERSION PACKAGE INTO FLAG...
  local in=$1 package=$2 into=$3
  shift 3
  echo "  $(basename "$into"), $SECONDS s" >&2
  (cd "$(module "$in")" && go build "$@" -ldflags "-s -w" -o "$into" "$package") >&2
}

echo "building the programs of a node, once, into $cache (about six minutes on two cores if the control plane was built there, else ten)" >&2
program "$containerd" ./cmd/containerd "$build/containerd" -tags no_btrfs,no_zfs,no_devmapper
program "$containerd" ./cmd/containerd-shim-runc-v2 "$build/containerd-shim-runc-v2"
program "$containerd" ./cmd/ctr "$build/ctr"
for plugin in main/ptp main/loopback ipam/host-local; do
  program "$plugins" "./plugins/$plugin" "$build/cni/$(basename "$plugin")"
done

# Without libseccomp, which few machines have the headers of. So the program that is
# called runc removes the profile from what it hands on; see its documentation.
CGO_ENABLED=1 program "$runc" . "$build/runc-without-seccomp"
go build -ldflags "-s -w" -o "$build/runc" ./runc

# The kubelet has the versions of the control plane, and more packages, so that its
# sums are not among those of hack/k8s; the checksum database has them.
echo "  kubelet, $SECONDS s" >&2
mkdir "$build/src"
cp ../k8s/go.mod ../k8s/go.sum "$build/src"
minor=${kubernetes#v*.}
version="-X k8s.io/component-base/version"
(cd "$build/src" && go build -mod=mod -o "$build/kubelet" \
  -ldflags "-s -w $version.gitVersion=$kubernetes $version.gitMajor=1 $version.gitMinor=${minor%%.*}" k8s.io/kubernetes/cmd/kubelet) >&2
rm -rf "$build/src"

chmod 755 "$build"
mv "$build" "$folder"
trap - EXIT
echo "$folder"
