// Package show holds the commands that read: explain, status, history, events and forecast. They
// write nothing. Of config they show what the manager has recorded.
package show
