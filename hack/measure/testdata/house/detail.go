package house

func detail(n int) int {
	if n > 0 {
		return detail(n - 1) // no arrow
	}
	return 0
}
