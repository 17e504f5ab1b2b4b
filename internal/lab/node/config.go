package node

import "fmt"

func containerdConfig(dir, programs string) string {
	return fmt.Sprintf(`version = 3
root = "%[1]s/state/containerd"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "%[3]s"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["%[2]s/cni"]
    conf_dir = "%[1]s/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "%[2]s/runc"
`, dir, programs, sandbox)
}

// kubeletConfig has the kubelet listen on loopback and authenticate no user. Mounted content
// is renewed within seconds instead of a minute.
func kubeletConfig(dir, groups string, ports [2]int) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: 127.0.0.1
port: %[3]d
healthzPort: %[4]d
cgroupDriver: cgroupfs
cgroupRoot: /%[2]s
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: %[1]s/resolv.conf
podLogsDir: %[1]s/state/log/pods
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 50Mi, nodefs.available: 0%%, imagefs.available: 0%%}
maxPods: 200
registryPullQPS: 0
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 0
syncFrequency: 2s
configMapAndSecretChangeDetectionStrategy: Watch
`, dir, groups, ports[0], ports[1])
}

func networkConfig(subnet string) string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "node", "plugins": [{"type": "ptp", "ipMasq": false, "ipam": {
  "type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`, subnet)
}
