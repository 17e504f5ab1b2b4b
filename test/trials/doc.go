// Package trials tries a program against promises of the documentation, from outside: it
// starts the program as a process, and knows of it only what the API of the cluster, its
// output and its exit codes show. So it can try any binary on any cluster, such as a release
// before it is published:
//
//	make trials BINARY=/usr/local/bin/spillway CLUSTER=~/.kube/config
//
// Without these it tries bin/spillway on a control plane that it starts. On a cluster, each
// trial has a namespace of its own and a manager for that namespace alone, which runs on
// this machine, and removes what it made. The kinds of the rings are installed, and stay.
//
// A trial is a row of [all]: a promise, and a function that tries it. A promise that cannot
// be tried like that is a row as well, and says why; tests of the packages try it.
// "go test" tries a few of them, so that the trials themselves do not break.
package trials
