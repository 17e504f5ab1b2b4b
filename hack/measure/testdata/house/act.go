package house

func (*Bare) act() int { return detail(1) + below(1) } // below is in a file that is read earlier
