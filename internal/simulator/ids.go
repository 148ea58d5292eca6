package simulator

import (
	"math/rand/v2"
	"time"
)

// newID returns prefix and 24 random hex digits. Ids need to be unique and unordered, not secret, so the runtime's
// lock-free generator is enough.
func newID(prefix string) string {
	var b [40]byte
	id := append(b[:0], prefix...)
	for range 3 {
		v := rand.Uint32()
		for shift := 28; shift >= 0; shift -= 4 {
			id = append(id, hexDigits[v>>shift&0xf])
		}
	}
	return string(id)
}

func unixNow() int64 { return time.Now().Unix() }
