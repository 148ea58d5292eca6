package kvstore

import (
	"encoding/binary"
)

// encoder writes values as varints and length-prefixed bytes: ids may have any
// bytes, which JSON would not keep.
type encoder struct{ b []byte }

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// decoder reads what encoder wrote; after an error it only yields zeroes.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint() uint64 {
	n, width := binary.Uvarint(d.b)
	if width <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[width:]
	return n
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// count reads a number of things of which each takes at least a byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n) //nolint:gosec // bounded by a length
}

// err is errMalformed when something was wrong or is left over.
func (d *decoder) err() error {
	if d.bad || len(d.b) > 0 {
		return errMalformed
	}
	return nil
}
