// Package display writes what commands show to people: sentences, trees, columns and
// explanations.
//
// Color and folding are for terminals. Elsewhere each line is whole, so that it can be
// searched. Text of other authors is printed without control characters.
package display
