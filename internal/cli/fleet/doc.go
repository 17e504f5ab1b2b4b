// Package fleet holds the commands that list modules and steer them: approve, pin,
// roll back.
package fleet
