// Package hosted serves the pages of the dashboard in a cluster, to many people.
//
//  1. A request is of a person: who has logged in at the issuer of OpenID Connect, [Login],
//     or whom an authenticating proxy names, [Proxy]. Of no one, nothing is shown.
//  2. All is read and done with a client that impersonates her. The account of the server
//     itself may impersonate, and nothing else; a client without a user is never made.
//  3. Those who are the same user with the same groups, and look at the same namespace, share
//     one look. It is closed when they are gone, and recreated after a while, so that what
//     was withdrawn from her is not shown longer. There are only so many looks.
//  4. What is kept for a person who is away is in her cookie, sealed; memory has a bound for
//     each thing that a client can have the server keep.
package hosted

// The account of the server. Which users and groups, the installation says.
// +kubebuilder:rbac:groups="",resources=users;groups,verbs=impersonate
