// Package source reads manifests from files, directories and standard input, and
// remembers where each field stands, so that a finding can point at
// it.
//
// It reads what kubectl apply would read, in the same way: YAML with the meaning of
// Kubernetes (an unquoted "yes" is a boolean), several documents in one file, JSON,
// and lists taken apart. It is stricter where kubectl is silent: a key that stands
// twice in a map, or a second document without a separator, is a mistake. Nothing
// is rendered: a Kustomize overlay or a Helm chart is refused with the command that
// renders it.
//
// Mistakes do not end the reading. What can be read is returned beside an error
// that joins one [Error] for each mistake.
package source
