package controlplane

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// The ports lie below those that the kernel gives to outgoing connections, so
// that none of these takes one between our choice and its use. Each process
// begins at a place of its own, so that those that choose at the same time
// seldom try the same.
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

// FreePort returns a loopback port on which no process listens, and keeps it until the
// process ends: no other process gets it from FreePort, also while what listened on it is
// stopped for a time.
func FreePort() (int, error) {
	first := os.Getpid() % portBlocks * ownPorts
	for range lastPort - firstPort {
		port := firstPort + (first+int(portsTried.Add(1)))%(lastPort-firstPort)
		if isFree(port) && keep(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port between 20000 and 32000 on the loopback address")
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// kept are the UDP ports that say to other processes that the TCP port of the same number
// is taken. Nothing that is started here uses UDP.
var kept sync.Map

func keep(port int) bool {
	l, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	kept.Store(port, l)
	return true
}
