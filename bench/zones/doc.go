// Package zones measures the zones ring: API calls for each Pod, the idle time
// between two zones, and many groups that roll at the same time. While it measures, an
// observer of its own checks that the rules are kept.
package zones
