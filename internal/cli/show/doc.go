// Package show holds the commands that read: explain, status, history and events. They
// write nothing. Of config they show what the manager has recorded.
package show
