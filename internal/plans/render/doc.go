// Package render makes manifests of templates, always the same ones of the same
// input.
//
// Templates are Go templates with the functions of sprig that are on a list, and
// toYaml. A function whose result would differ from one render to the next, or
// that reads from the process, its files or the network, is refused by name; it is
// found in every place, also where it would not be executed.
//
// A template can neither panic nor fill the memory: functions that multiply
// their input, and the output as a whole, are bounded.
package render
