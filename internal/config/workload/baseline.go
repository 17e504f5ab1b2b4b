package workload

import "cmp"

// Baseline equates a hash on a template with the hash of a larger or smaller
// scope, at the moment when a workload was adopted.
type Baseline struct {
	Template, Scope string
	// First stands for the hash of a template that has none: that of the scope when the workload was
	// opted in.
	First string
}

// String is the baseline as it is stored in the annotation.
func (b Baseline) String() string {
	if b.First == "" {
		return b.Template + ":" + b.Scope
	}
	return b.Template + ":" + b.Scope + ":" + b.First
}

// Adopt has a workload know what is recorded of its adoption where the manager alone writes; nothing if that is zero.
func (w *Workload) Adopt(recorded Baseline) {
	w.Records.Adopted = recorded
	w.Demand.First = w.Accepted() == ""
}

// baseline is the one of the template's hash, or of a template that has none; zero if there is none. What is recorded counts
// before what stands on the workload.
func (w *Workload) baseline() Baseline {
	if w.isAdopted() {
		return w.Records.Adopted
	}
	if b := w.Records.Baseline; b.Template == w.Template.Hash {
		return b
	}
	return Baseline{}
}

// isAdopted is true if what is recorded is about the template as it is. A workload that was created opted in is another one
// than that which had no hash when it was adopted: it gets its hash immediately.
func (w *Workload) isAdopted() bool {
	b := w.Records.Adopted
	return b.Scope != "" && b.Template == w.Template.Hash && (b.Template != "" || w.isLater)
}

// adoption equates the hash of the template, or none, with the present config.
func (w *Workload) adoption() Baseline {
	b := Baseline{Template: w.Template.Hash, Scope: w.Hashes.Desired}
	if b.Template == "" {
		b.First = cmp.Or(w.baseline().First, w.Hashes.Unignored, b.Scope)
	}
	return b
}

// Adoption is what is to be recorded, zero if nothing is. What is known of a hash is kept while the template has another
// one: a user may go back to it.
func (w *Workload) Adoption() Baseline {
	b := w.baseline()
	switch {
	case w.Settings.Tracked && w.IsCurrent() && w.Adopts():
		return w.adoption()
	case b.Scope == "" && w.Records.Adopted.Template != "":
		return w.Records.Adopted
	case w.Hashes != nil && w.Template.Hash == w.Hashes.Desired && b.Scope != b.Template: // the hash means what it says
		return Baseline{}
	default:
		return b
	}
}

// LacksInputs is true of a workload whose adoption is recorded, if it does not stand on it what the hash of its config was computed
// from, or what counted for it: so that the next manager need not read it.
func (w *Workload) LacksInputs() bool {
	if !w.isAdopted() || w.Hashes == nil || w.Accepted() != w.Hashes.Desired {
		return false
	}
	_, sees := readSeen(w.seen, w.Accepted())
	return w.Template.Hash == "" && w.Records.Roll.Inputs == "" || w.Reloaded != nil && !sees
}

// MarksAdopted is true if what stands on the workload of its adoption is recorded.
func (w *Workload) MarksAdopted() bool { return w.Records.Baseline.Scope != "" && w.isAdopted() }
