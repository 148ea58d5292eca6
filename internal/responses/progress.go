package responses

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callfan/callfan/internal/apiclient"
	"github.com/callfan/callfan/internal/runs"
)

// progress turns what the API says about one response into events.
type progress struct {
	on func(runs.Event) error
	// complete: what a service leaves out is told before the end.
	complete bool
	// response is the response's id once it is known.
	response string
	created  bool
	items    items

	api    *apiclient.Client
	answer apiclient.Answer // without its body
}

// frame is one event of a stream, as far as callfan reads it.
type frame struct {
	Type     string          `json:"type"`
	Sequence int64           `json:"sequence_number"`
	Index    *int            `json:"output_index"`
	Item     json.RawMessage `json:"item"`
	Delta    string          `json:"delta"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// frame tells one frame; over says that it was the last one.
func (p *progress) frame(data []byte) (over bool, err error) {
	var f frame
	if err := unmarshal(data, &f); err != nil {
		return false, p.unreadable(fmt.Errorf("a frame of the stream: %w", err))
	}
	switch f.Type {
	case "error":
		return false, p.failed(data, f.Error)
	case "response.created", "response.queued", "response.in_progress":
		return false, p.begun(f)
	case "response.output_item.added":
		return false, p.on(runs.Event{
			Kind: runs.ItemAdded, Sequence: f.Sequence, Index: p.items.added(f.Index, f.Item), Item: f.Item,
		})
	case "response.output_item.done":
		return false, p.on(runs.Event{
			Kind: runs.ItemDone, Sequence: f.Sequence, Index: p.items.finished(f.Index, f.Item), Item: f.Item,
		})
	case "response.output_text.delta":
		event := runs.Event{Kind: runs.TextDelta, Sequence: f.Sequence, Delta: f.Delta}
		if f.Index != nil {
			event.Index = *f.Index
		}
		return false, p.on(event)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true, p.ended(f)
	}
	if f.Type == "" && present(f.Error) { // of something between the API and here
		return false, p.failed(data, f.Error)
	}
	return false, nil
}

// begun tells of a response that is being made, once.
func (p *progress) begun(f frame) error {
	if p.created {
		return nil
	}
	r, err := p.read(f.Response)
	if err != nil {
		return p.unreadable(fmt.Errorf("%s: %w", f.Type, err))
	}
	return p.tellCreated(f.Sequence, r)
}

func (p *progress) tellCreated(sequence int64, r response) error {
	p.created = true
	return p.on(runs.Event{Kind: runs.Created, Sequence: sequence, Response: r.ID, Status: r.Status})
}

// ended tells the end. The name of the event says how the response ended.
func (p *progress) ended(f frame) error {
	r, err := p.read(f.Response)
	if err != nil {
		return p.unreadable(fmt.Errorf("%s: %w", f.Type, err))
	}
	r.Status = f.Type[len("response."):]
	r.Output = p.items.output(r.Output)
	return p.tellEnded(f.Sequence, r)
}

func (p *progress) tellEnded(sequence int64, r response) error {
	if p.complete {
		if err := p.tellMissing(r); err != nil {
			return err
		}
	}
	return p.on(runs.Event{
		Kind: runs.Ended, Sequence: sequence, Response: r.ID, Status: r.Status, Outcome: r.outcome(),
	})
}

// tellMissing tells what should have been told before the end.
func (p *progress) tellMissing(r response) error {
	if !p.created {
		if err := p.tellCreated(0, r); err != nil {
			return err
		}
	}
	for i, item := range r.Output {
		if _, told := p.items.done[i]; told {
			continue
		}
		if err := p.on(runs.Event{Kind: runs.ItemDone, Index: i, Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// whole tells what a response says that is not streamed.
func (p *progress) whole(body []byte) error {
	r, err := p.read(body)
	if err != nil {
		return p.unreadable(err)
	}
	if r.Status == "" { // said by servers that only know responses that are over
		r.Status = "completed"
	}
	switch r.Status {
	case "queued", "in_progress":
		return p.tellCreated(0, r)
	case "completed", "incomplete", "failed", "cancelled":
		return p.tellEnded(0, r)
	default:
		return p.unreadable(fmt.Errorf("a response with the status %q", r.Status))
	}
}

// read reads a response, which is the one that was asked for.
func (p *progress) read(raw json.RawMessage) (response, error) {
	var r response
	if err := unmarshal(raw, &r); err != nil {
		return r, err
	}
	switch {
	case r.ID == "" && p.response == "":
		return r, errors.New("a response without an id")
	case r.ID == "":
		r.ID = p.response
	case p.response == "":
		p.response = r.ID
	case p.response != r.ID:
		return r, fmt.Errorf("about response %q instead of %q", r.ID, p.response)
	}
	return r, nil
}

func (p *progress) unreadable(err error) error { return p.api.Unreadable(p.answer, err) }

// failed is the refusal that an error frame stands for. The API puts the error's members
// into the frame, others into an object of it.
func (p *progress) failed(data, nested []byte) error {
	said := apiclient.ReadError(data)
	if present(nested) {
		said = apiclient.ReadError(nested)
	} else {
		said.Type = ""
	}
	r := p.api.Said(p.answer, said, "the stream reported an error")
	r.Class = frameClass(said)
	return r
}
