#!/usr/bin/env bash
# Builds the control plane that tests and the demo run on, from Go modules, into
# a cache outside the work tree. The last line of its output is the folder, and
# the only one on standard output: progress goes to standard error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
key=$(cat go.mod go.sum build.sh | sha256sum | cut -c1-12)
cache=${SPILLWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spillway}/k8s
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
trap 'rm -rf "$build"' EXIT

# Clients reject a server whose version they cannot read.
minor=${version#v*.}
ldflags="-s -w \
-X k8s.io/component-base/version.gitVersion=$version \
-X k8s.io/component-base/version.gitMajor=1 \
-X k8s.io/component-base/version.gitMinor=${minor%%.*}"

compile() { # NAME PACKAGE
  local started=$SECONDS packages=0
  echo "building $1 …" >&2
  while read -r line; do
    case $line in
      *' '* | '#'*) echo "  $line" >&2 ;; # what the compiler has to say
      *)
        packages=$((packages + 1))
        if [ $((packages % 250)) = 0 ]; then echo "  $packages packages, $((SECONDS - started)) s" >&2; fi
        ;;
    esac
  done < <(CGO_ENABLED=0 go build -v -trimpath -ldflags "$ldflags" -o "$build/$1" "$2" 2>&1 || true)
  [ -x "$build/$1" ] || { echo "building $1 failed" >&2; exit 1; }
  echo "  $1: $packages packages, $((SECONDS - started)) s" >&2
}

echo "building the control plane, Kubernetes $version, once (about ten minutes on two cores)" >&2
compile etcd go.etcd.io/etcd/server/v3
for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
  compile "$name" "k8s.io/kubernetes/cmd/$name"
done
compile kwok sigs.k8s.io/kwok/cmd/kwok

chmod 755 "$build"
mv "$build" "$folder"
trap - EXIT
echo "$folder"
