// Package flux runs Flux on the control planes of tests and of the demo.
//
// kustomize-controller and helm-controller are the real ones, built from their modules by
// hack/flux/build.sh. source-controller cannot be built from modules: so [Sources]
// plays it. It serves revisions that were published to it as tar.gz over loopback,
// and writes the status of GitRepositories, OCIRepositories, Buckets and HelmCharts that ask for one of
// them, as source-controller does once it has fetched it.
package flux
