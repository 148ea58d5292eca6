package queue

import (
	"encoding/json"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Registration is what an executor declares about itself.
type Registration struct {
	// Pool is the unit of deployment and permission that the executor belongs to: 1
	// to 64 of [A-Za-z0-9_-].
	Pool string
	// Functions are all functions that the executor serves.
	Functions []call.Function
	// ID, Language, Version and Host describe the executor to operators.
	ID, Language, Version, Host string
}

// Binding is what a registered executor needs to pull calls.
type Binding struct {
	// Stream and Consumer name the durable consumer of the pool.
	Stream, Consumer string
	// AckWait is the lease of a delivered call; renew it every third of that.
	AckWait time.Duration
	// MaxPayload is the largest message, headers included, in bytes.
	MaxPayload int64
	// ResultPrefix is the beginning of the result subjects.
	ResultPrefix string
	// Refresh is how often to register again, so that a lost registration heals.
	Refresh time.Duration
}

// The wire forms of a registration.
type (
	registerRequest struct {
		Protocol  int             `json:"protocol"`
		Pool      string          `json:"pool"`
		Function  json.RawMessage `json:"function"`
		Functions []string        `json:"functions"`
		Executor  executorInfo    `json:"executor"`
	}
	executorInfo struct {
		ID       string `json:"id,omitempty"`
		Language string `json:"language,omitempty"`
		Version  string `json:"version,omitempty"`
		Host     string `json:"host,omitempty"`
	}
	registerReply struct {
		OK      bool           `json:"ok"`
		Binding *wireBinding   `json:"binding,omitempty"`
		Error   *registerFault `json:"error,omitempty"`
	}
	registerFault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	wireBinding struct {
		Stream       string `json:"calls_stream"`
		Consumer     string `json:"consumer"`
		AckWait      int64  `json:"ack_wait_ms"`
		MaxPayload   int64  `json:"max_payload"`
		ResultPrefix string `json:"result_prefix"`
		Refresh      int64  `json:"refresh_ms"`
	}
)

func (b Binding) wire() *wireBinding {
	return &wireBinding{
		Stream: b.Stream, Consumer: b.Consumer, AckWait: b.AckWait.Milliseconds(),
		MaxPayload: b.MaxPayload, ResultPrefix: b.ResultPrefix, Refresh: b.Refresh.Milliseconds(),
	}
}

func (b wireBinding) binding() Binding {
	return Binding{
		Stream: b.Stream, Consumer: b.Consumer, AckWait: time.Duration(b.AckWait) * time.Millisecond,
		MaxPayload: b.MaxPayload, ResultPrefix: b.ResultPrefix, Refresh: time.Duration(b.Refresh) * time.Millisecond,
	}
}
