// Package reloader says what the annotations of Reloader 1.4.21 (github.com/stakater/Reloader) ask for: by
// which ConfigMaps, Secrets and SecretProviderClasses a workload is rolled. It is pure.
//
// What counts is what Reloader does, where that differs from what its pages say:
//
//   - For each kind of object, the triggers of the workload count: the list of names, "auto", "auto" of the
//     kind, and "search". Only if it has none of the four do those of its Pod template count.
//   - A list has regular expressions, each between ^ and $: "a|b" is what begins with a, or ends with b.
//     It rolls also for objects that no container reads. The other triggers roll only for those that a
//     container or an init container mounts or reads.
//   - "auto" is true as strconv.ParseBool has it. "search" is true only if it is "true", and rolls for objects
//     with "match", which is as exact.
//   - Objects with "ignore" roll nothing, also where a list names them. So do those that the workload
//     excludes, by their plain names; exclusions on the Pod template do not count.
//
// What Reloader has recorded in a Pod template says what it has rolled for, by a hash of its own: what was edited
// while neither ran is found by that.
//
// It differs from Reloader in one point: of several volumes of one object, only the first one counts for Reloader,
// which rolls nothing if no container mounts that one. Here each counts.
package reloader
