package conformance

import (
	"io"
	"net"
	"sync"
)

// tap is what lies between the server and the executor's processes. While it is shut, what
// the server sends lies there; none of it is lost.
type tap struct {
	address  string
	listener net.Listener
	copies   sync.WaitGroup

	mu   sync.Mutex
	open sync.Cond
	held bool
	ends []net.Conn
}

// tapBefore listens for the processes of a server.
func tapBefore(server string) (*tap, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &tap{address: listener.Addr().String(), listener: listener}
	p.open.L = &p.mu
	p.copies.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.join(client, server)
		}
	})
	return p, nil
}

func (p *tap) join(client net.Conn, server string) {
	back, err := net.Dial("tcp", server)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.ends = append(p.ends, client, back)
	p.mu.Unlock()
	p.copies.Go(func() { _, _ = io.Copy(back, client); _ = back.Close() })
	p.copies.Go(func() { _, _ = io.Copy(gate{p, client}, back); _ = client.Close() })
}

// shut holds back what the server sends, or lets it go on.
func (p *tap) shut(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	p.open.Broadcast()
}

func (p *tap) close() {
	_ = p.listener.Close()
	p.shut(false)
	p.mu.Lock()
	for _, end := range p.ends {
		_ = end.Close()
	}
	p.mu.Unlock()
	p.copies.Wait()
}

// gate writes to a process while the tap is open.
type gate struct {
	tap *tap
	to  io.Writer
}

func (g gate) Write(b []byte) (int, error) {
	g.tap.mu.Lock()
	for g.tap.held {
		g.tap.open.Wait()
	}
	g.tap.mu.Unlock()
	return g.to.Write(b)
}
