// Package render makes manifests of templates, always the same ones of the same
// input.
//
// Templates are Go templates with the functions of sprig that are on a list, and
// toYaml. A function whose result would differ from one render to the next, or
// that reads from the process, its files or the network, is refused by name; it is
// found in every place, also where it would not be executed.
//
// Templates find methods by name, so what they see has none, but for versions: their data are
// maps, lists, text and numbers, and so is what functions return.
//
// A template is rendered in a process of its own, which is this very program: there, what
// takes more than two seconds of processor time, 64 MiB of memory or 16 MiB of stack ends
// that process, and the template has failed with the limit that it exceeded. In Go nothing
// less would do: neither a stack that overflows nor a loop without calls can be ended from
// the inside. That the process could not be started, or was ended by others, is
// [ErrUnavailable]: it says nothing about the template.
package render
