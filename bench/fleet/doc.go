// Package fleet measures the fleet ring on the hub: how long a decision over many
// clusters takes, and what a new revision costs in calls. Who carries out what is
// assigned is played; nobody fetches or applies anything.
package fleet
