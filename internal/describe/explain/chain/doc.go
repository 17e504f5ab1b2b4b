// Package chain has the chain of links that explain shows, and asks the questions from
// which it is built. It knows no kind: the functions that ask about objects are passed to the [Asker].
//
// A chain has at least one link, never asks twice about the same object, and ends after
// a bounded number of links.
package chain
