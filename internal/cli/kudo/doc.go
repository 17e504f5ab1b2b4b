// Package kudo is the command line as KUDO has it: what a user calls as kubectl kudo. It has
// KUDO's grammar and flags, and says what KUDO says; the work is done by the commands of
// this program.
package kudo
