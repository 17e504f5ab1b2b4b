// Package dashboard opens the pages of spillway dashboard in Chromium, as people do: with
// a mouse, with the keyboard alone, without scripts, in the dark and on a telephone. They show
// a story of all rings on a real API server, with a real manager, and are of two users with
// different rights.
//
// What happens in the browser is in site/dashboard. It needs Chromium and node, so it has a
// build tag: make dashboard-test. "make screenshots" makes the pictures of the documentation.
package dashboard
