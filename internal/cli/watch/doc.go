// Package watch holds the watch command: a tree and a timeline on a terminal, a line
// for each change elsewhere.
//
// The command watch.go decides what is watched and when that ends; an onlooker shows it.
// The interactive onlooker is a model that receives messages and asks no API server.
// Keys run the commands that a person would type.
package watch
