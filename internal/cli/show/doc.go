// Package show holds the commands that read: explain, status, history and events. They
// decide by the code of the manager and write nothing.
package show
