// Package plan holds the commands that show the plans of an Instance, and that trigger,
// abandon and retry them.
package plan
