// Package trials tries a program against promises of the documentation, from outside: it
// starts the program as a process, and knows of it only what the API of the cluster and
// its exit codes show. So it can try any binary on any cluster, such as a release before
// it is published:
//
//	make trials BINARY=/usr/local/bin/spillway CLUSTER=~/.kube/config
//
// Without these it tries bin/spillway on a control plane that it starts. Each trial has a
// namespace of its own and a manager for that namespace alone, and removes what it made.
// The kinds of the rings are installed, and stay.
//
// What needs more than one cluster, an installation with webhooks, a manager that is
// stopped at a certain write, or a clock, is not here: the packages of the rings try that.
package trials
