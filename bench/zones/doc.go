// Package zones measures the zones ring: API calls for each Pod, the idle time
// between two zones, and many groups at once. While it measures, an observer of
// its own checks the rules: speed is easy, speed with the rules kept is the point.
package zones
