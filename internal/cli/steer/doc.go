// Package steer holds the commands by which a person pauses, resumes and retries a
// rollout.
package steer
