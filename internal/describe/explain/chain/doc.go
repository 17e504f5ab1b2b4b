// Package chain has the chain of links that explain shows, and asks the questions from
// which it is built. It knows no kind: an [Asker] is told how objects are asked about.
//
// A chain has at least one link, never asks twice about the same object, and ends after
// a bounded number of links.
package chain
