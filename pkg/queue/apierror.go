package queue

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// apiError reads the error of a JetStream API answer.
func apiError(reply []byte, consumer string) error {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return fmt.Errorf("unreadable answer about %s: %w", consumer, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
