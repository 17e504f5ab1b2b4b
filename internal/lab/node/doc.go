// Package node joins a real node to a control plane: a kubelet with containerd and runc, whose
// Pods are real containers. It needs Linux and root; [Check] says what else is missing.
//
// # Invariants
//
//   - All of it runs in namespaces of its own for processes and mounts, whose first process the
//     kernel ends with this one, however that ends. With it end containers and their networks,
//     and mounts are undone; what is written is in memory.
//   - Several nodes at a time do not meet: each has control groups, a subnet and ports of its own.
//   - The kubelet listens on loopback only, and accepts no request.
//
// There is one image, [Image], with one program: see package program. Pods have no access to the
// API server, which listens on loopback, and no ServiceAccount is mounted:
// automountServiceAccountToken must be false.
package node
