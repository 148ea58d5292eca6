package queue

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// noToken stands for an empty token; no function has it.
const noToken = "="

// deadHeaderRoom is kept free for the headers of a dead letter.
const deadHeaderRoom = 4 << 10

// Bury keeps a message that could not be used: its body as it came, the reason in
// headers. A body that is too large for the stream is cut, and the header
// Fn-Truncated then holds its size. The same letter twice within the duplicate
// window is stored once.
func (c *Conn) Bury(ctx context.Context, letter call.DeadLetter) error {
	token := letter.Token
	if token == "" || strings.ContainsAny(token, ".*> \t\r\n") {
		token = noToken
	}
	body := letter.Body
	h := newHeaderSet(6)
	h.add(headerProtocol, Protocol)
	h.add(headerReason, oneLine(letter.Reason, 64))
	h.add(headerDetail, oneLine(letter.Detail, 1<<10))
	h.add(headerSubject, oneLine(letter.Subject, 1<<10))
	h.add(headerMessageID, deadID(letter))
	if limit := c.nc.MaxPayload() - deadHeaderRoom; limit > 0 && int64(len(body)) > limit {
		h.add(headerTruncated, strconv.Itoa(len(body)))
		body = body[:limit]
	}
	var err error
	burst := []publication{{msg: &nats.Msg{Subject: c.names.dead(token), Header: h.header, Data: body}, err: &err}}
	c.publishAll(ctx, "dead letter", burst, false)
	if err != nil {
		return fmt.Errorf("bury: %w", err)
	}
	return nil
}

// oneLine makes s fit for a header.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

func deadID(letter call.DeadLetter) string {
	h := sha256.New()
	for _, s := range []string{letter.Reason, letter.Subject, string(letter.Body)} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))[:22]
}
