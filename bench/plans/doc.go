// Package plans measures the plans ring: the time and the API calls that plans
// take, and that a plan that waits costs nothing at all.
package plans
