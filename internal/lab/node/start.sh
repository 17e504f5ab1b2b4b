# Runs a node as the first process of namespaces of its own: the programs, what they
# start, and all that they mount ends with it, however it ends. What they keep is in
# memory, so nothing is left on disk either.
#
# usage: start.sh FOLDER PROGRAMS IMAGE KUBECONFIG NAME ADDRESS
set -euo pipefail
folder=$1 programs=$2 image=$3 kubeconfig=$4 name=$5 address=$6
trap exit TERM INT

mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 node "$folder/state"
mkdir "$folder/state"/{kubelet,containerd,upper,work,log}
# Some of their folders and sockets have fixed names. HOME may be below /var/lib, so
# what exists there stays visible.
mount -t overlay -o "lowerdir=/var/lib,upperdir=$folder/state/upper,workdir=$folder/state/work" node /var/lib
mount --bind "$folder/state/log" /var/log
mount -t tmpfs -o mode=755 node /run

export PATH=$programs:$PATH
containerd --config "$folder/containerd.toml" >"$folder/containerd.log" 2>&1 &
containerd=$!
until ctr version >/dev/null 2>&1; do
  kill -0 "$containerd" || { tail -n 20 "$folder/containerd.log"; exit 1; }
  sleep 0.05
done
ctr --namespace k8s.io images import --digests "$image"
kubelet --config "$folder/kubelet.yaml" --kubeconfig "$kubeconfig" --hostname-override "$name" --node-ip "$address" \
  --root-dir "$folder/state/kubelet" --node-labels "type=real,topology.kubernetes.io/zone=zone-a" >"$folder/kubelet.log" 2>&1 &
wait -n || true
echo "containerd or the kubelet has ended:"
tail -n 20 "$folder/containerd.log" "$folder/kubelet.log"
exit 1
