package mcptools

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxMessage bounds one message of a server, in bytes. An image of maxOutput fits.
const maxMessage = 16 << 20

var errMessageTooLarge = fmt.Errorf("a message of the server has more than %d bytes", maxMessage)

// lines reads the messages of a server from its standard output, one a line. A line
// that cannot be a message, as of a server that greets, is left out.
type lines struct {
	from    io.ReadCloser
	in      *bufio.Reader
	pending []byte
	// stray is told once that there are such lines.
	stray func()
}

func newLines(from io.ReadCloser, stray func()) *lines {
	return &lines{from: from, in: bufio.NewReaderSize(from, 64<<10), stray: stray}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.pending) == 0 {
		line, err := l.line()
		if err != nil {
			return 0, err
		}
		switch text := bytes.TrimSpace(line); {
		case len(text) == 0:
		case text[0] == '{' || text[0] == '[':
			l.pending = append(keepRaw(text), '\n')
		case l.stray != nil:
			l.stray()
			l.stray = nil
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// line is the next one, whole. What the server left unfinished is no message.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errMessageTooLarge
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (l *lines) Close() error { return l.from.Close() }
