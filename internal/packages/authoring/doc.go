// Package authoring writes new packages, and adds parameters, tasks, plans and maintainers to
// the files of those that exist. What a file has already stays as it is, to the byte.
package authoring
