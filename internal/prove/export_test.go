package prove

// Stricter returns options by whose rules fewer may be unavailable.
func Stricter(o Options, by int) Options {
	o.stricter = by
	return o
}
