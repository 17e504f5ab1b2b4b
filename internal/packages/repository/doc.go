// Package repository reads and writes repositories of packages in the format of KUDO: a
// file index.yaml, served over HTTP, that names archives, and the user's list of such
// repositories.
//
// # Invariants
//
//   - What is downloaded is bounded in size, and read before any of it is used.
//   - An archive whose digest is in the index is used only if it has that digest.
//   - A repository that is read over HTTPS leads to plain HTTP only for what has a digest.
package repository
