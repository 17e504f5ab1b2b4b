package controlplane

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// The ports lie below those that the kernel gives to outgoing connections, so
// that none of these takes one between our choice and its use. Each process
// begins at a place of its own and gives out no port twice, so that those that
// choose at the same time seldom try the same: who chooses a port, and then has
// a program listen at it, cannot hold it meanwhile.
const (
	firstPort  = 20000
	lastPort   = 32000
	ownPorts   = 100
	portBlocks = (lastPort - firstPort) / ownPorts
)

var portsTried atomic.Int64

func threePorts() (a, b, c int, err error) {
	var errs [3]error
	a, errs[0] = FreePort()
	b, errs[1] = FreePort()
	c, errs[2] = FreePort()
	return a, b, c, errors.Join(errs[:]...)
}

// FreePort returns a loopback port on which no process listens.
func FreePort() (int, error) {
	first := os.Getpid() % portBlocks * ownPorts
	for range lastPort - firstPort {
		port := firstPort + (first+int(portsTried.Add(1)))%(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, errors.Join(l.Close())
	}
	return 0, errors.New("no free port between 20000 and 32000 on the loopback address")
}
