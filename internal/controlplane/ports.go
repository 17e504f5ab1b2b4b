package controlplane

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports lie below those that the kernel gives to outgoing connections, so
// that none of these takes one between our choice and its use.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort returns a loopback port on which nobody listens.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, errors.Join(l.Close())
	}
	return 0, errors.New("no free port between 20000 and 32000 on the loopback address")
}

func threePorts() (a, b, c int, err error) {
	var errs [3]error
	a, errs[0] = FreePort()
	b, errs[1] = FreePort()
	c, errs[2] = FreePort()
	return a, b, c, errors.Join(errs[:]...)
}
