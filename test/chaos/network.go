//go:build unix

package chaos

import (
	"net"
	"strconv"
)

// network says at which addresses the parts of the installation find each other. The zero value has everything on
// loopback. With hosts of their own, see [Isolate], each NATS server, dispatcher and executor has a network namespace
// that can be cut off.
type network struct {
	hosts bool
	taken int
}

// base is the address of what runs beside the harness: Redis and the simulator.
func (n *network) base() string {
	if n.hosts {
		return hostNet + "1"
	}
	return "127.0.0.1"
}

// place makes the host of a process and gives its address.
func (n *network) place(p *process) (address string, err error) {
	if !n.hosts {
		return n.base(), nil
	}
	n.taken++
	address = hostNet + strconv.Itoa(10+n.taken)
	if err := addHost(p.name, address); err != nil {
		return "", err
	}
	p.host = p.name
	return address, nil
}

// hostNet is the network of the hosts, within the namespace of the harness.
const hostNet = "10.77.0."

// at is an address with a port.
func at(host, port string) string { return net.JoinHostPort(host, port) }
