// Package snapshot has readers that ask the API server little: one that lists each kind
// once, and one that watches it. Both read with the caller's own permissions, and keep
// digests of the values of ConfigMaps and Secrets instead of the values.
package snapshot
