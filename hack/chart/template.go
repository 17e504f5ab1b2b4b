package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

// Templates are found by trying: what is installed is looked at under all combinations of
// the options that matter for an object, and the template is what they have in common and
// what they differ by. So the templates follow what install does, whatever that is.

// supports are for each object the options that change it.
func supports(all []option) (map[string][]int, error) {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
	found := map[string]map[int]bool{}
	const bases = 32
	for n := range bases {
		base := make(assignment, len(all))
		for i, o := range all {
			base[i] = uint8(random.IntN(o.size())) //nolint:gosec // options have few values
		}
		if !base.runsRing() {
			base[n%len(allRings())] = 1
		}
		if err := compare(all, base, found); err != nil {
			return nil, err
		}
	}
	if err := compareRings(all, found); err != nil {
		return nil, err
	}
	lists := map[string][]int{}
	for name, of := range found {
		lists[name] = slices.Sorted(maps.Keys(of))
	}
	return lists, nil
}

// compareRings compares all sets of rings, under each source of certificates: much depends
// on both, and what one ring changes often only while no other does the same.
func compareRings(all []option, found map[string]map[int]bool) error {
	rings := len(allRings())
	certificate := slices.IndexFunc(all, func(o option) bool { return o.name == "certificate" })
	for value := range all[certificate].size() {
		for _, on := range []bool{false, true} {
			sets, err := setsOfRings(baseOf(all, rings, on).with(certificate, uint8(value)), rings)
			if err != nil {
				return err
			}
			noteRings(sets, rings, found)
		}
	}
	return nil
}

// baseOf has the first value of each option that is no ring, or the last.
func baseOf(all []option, rings int, last bool) assignment {
	base := make(assignment, len(all))
	for i := range all {
		if last && i >= rings {
			base[i] = uint8(all[i].size() - 1) //nolint:gosec // options have few values
		}
	}
	return base
}

// setsOfRings are the objects of each set of rings, by its bits.
func setsOfRings(base assignment, rings int) (map[int]map[string]map[string]any, error) {
	sets := map[int]map[string]map[string]any{}
	for set := 1; set < 1<<rings; set++ {
		for ring := range rings {
			base[ring] = uint8(set >> ring & 1)
		}
		var err error
		if sets[set], err = base.objects(); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// noteRings notes which objects change with each ring.
func noteRings(sets map[int]map[string]map[string]any, rings int, found map[string]map[int]bool) {
	for set, with := range sets {
		for ring := range rings {
			without, ok := sets[set&^(1<<ring)]
			if !ok {
				continue
			}
			for name := range found {
				if !reflect.DeepEqual(with[name], without[name]) {
					found[name][ring] = true
				}
			}
		}
	}
}

// compare notes which objects change when one option does.
func compare(all []option, base assignment, found map[string]map[int]bool) error {
	before, err := base.objects()
	if err != nil {
		return err
	}
	addNames(found, before)
	for i, o := range all {
		for value := range o.size() {
			other := base.with(i, uint8(value))
			if base[i] == other[i] || !other.runsRing() {
				continue
			}
			after, err := other.objects()
			if err != nil {
				return err
			}
			addNames(found, after)
			noteOption(before, after, i, found)
		}
	}
	return nil
}

// noteOption notes which objects are others with a value of an option.
func noteOption(before, after map[string]map[string]any, option int, found map[string]map[int]bool) {
	for name := range found {
		if !reflect.DeepEqual(before[name], after[name]) {
			found[name][option] = true
		}
	}
}

func addNames(found map[string]map[int]bool, objects map[string]map[string]any) {
	for name := range objects {
		if found[name] == nil {
			found[name] = map[int]bool{}
		}
	}
}

// combinations are all assignments of some options. The others have a value of which the
// object does not depend.
// What an option changes apart from all others needs only some of them.
func combinations(all []option, kind string, support []int) []assignment {
	base := make(assignment, len(all))
	for ring := range allRings() {
		if !slices.Contains(support, ring) { // so that all others may be off
			base[ring] = 1
			break
		}
	}
	list := []assignment{base}
	var apart []int
	for _, i := range support {
		if all[i].apart == kind {
			apart = append(apart, i)
			continue
		}
		list = withEach(list, i, all[i].size())
	}
	list = slices.DeleteFunc(list, func(a assignment) bool { return !a.runsRing() })
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec,mnd // the same each time
	const some = 64
	without := len(list)
	for _, i := range apart {
		for value := 1; value < all[i].size(); value++ {
			for range some {
				list = append(list, list[random.IntN(without)].with(i, uint8(value)))
			}
		}
	}
	return list
}

// templates are the files of templates, by name.
func templates() (map[string][]byte, error) {
	all := options()
	depends, err := supports(all)
	if err != nil {
		return nil, err
	}
	cache := map[string]map[string]map[string]any{}
	files := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(depends)) {
		kind, _, _ := strings.Cut(name, "/")
		text, err := template(all, name, combinations(all, kind, depends[name]), cache)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		file := strings.ToLower(kind) + ".yaml"
		if files[file] == nil {
			files[file] = []byte("{{- /* Generated by make generate from internal/manifests. */ -}}\n")
		}
		files[file] = append(files[file], text...)
	}
	return files, nil
}

// withEach is each of some assignments with each value of an option.
func withEach(list []assignment, option, size int) []assignment {
	more := make([]assignment, 0, len(list)*size)
	for _, a := range list {
		for value := range size {
			more = append(more, a.with(option, uint8(value)))
		}
	}
	return more
}

// variants are the assignments that were tried, and those in which an object exists.
func variants(name string, tried []assignment, cache map[string]map[string]map[string]any) (universe, present []variant, err error) {
	for _, a := range tried {
		objects, known := cache[string(a)]
		if !known {
			if objects, err = a.objects(); err != nil {
				return nil, nil, err
			}
			cache[string(a)] = objects
		}
		universe = append(universe, variant{a, nil})
		if obj, ok := objects[name]; ok {
			present = append(present, variant{a, obj})
		}
	}
	return universe, present, nil
}

// template is that of one object.
func template(all []option, name string, tried []assignment, cache map[string]map[string]map[string]any) ([]byte, error) {
	universe, present, err := variants(name, tried, cache)
	if err != nil {
		return nil, err
	}
	e := &emitter{all: all, out: &bytes.Buffer{}, used: map[string]bool{}, of: name[strings.LastIndexByte(name, '/')+1:]}
	e.when(universe, present, func() {
		for _, l := range lists { // an object in each of some namespaces
			if strings.Contains(name, "/"+l.sample+"/") {
				e.linef(0, "{{- range %s := %s }}", l.variable, l.list)
				defer e.linef(0, "{{- end }}")
			}
		}
		e.linef(0, "---")
		err = e.value(present, "", 0)
	})
	var head bytes.Buffer
	for _, o := range all {
		if e.used[o.name] {
			fmt.Fprintf(&head, "{{- $%s := %s }}\n", o.name, o.define)
		}
	}
	return append(head.Bytes(), e.out.Bytes()...), err
}
