// Package selection narrows and sorts what a command lists, by the flags that kubectl has for
// it: -l, --field-selector and --sort-by.
package selection
