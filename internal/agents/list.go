package agents

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// pageSize is the most that the API gives in one page.
const pageSize = 100

// Selector says which sessions to list; a session has to match all of it. The
// zero value is every session of the project. It is an alias of an unnamed
// struct, so that packages that must not import each other agree on it.
type Selector = struct {
	// AgentID is the id of a stored agent.
	AgentID string
	// Metadata are exact pairs. The API's filter is eventually consistent.
	Metadata map[string]string
}

// Summary is a session as a list shows it. The list has no status filter and may
// be behind; the session itself says what is pending.
type Summary = struct{ ID, Status string }

// List yields the sessions that match, newest first, page by page. An error is
// yielded once, at the end; what came before it is valid.
func (c *Client) List(ctx context.Context, sel Selector) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		params := openai.BetaAgentSessionListParams{Limit: openai.Int(pageSize)}
		if sel.AgentID != "" {
			params.AgentID = openai.String(sel.AgentID)
		}
		if len(sel.Metadata) > 0 {
			params.Metadata = &sel.Metadata
		}
		for {
			page, err := c.listPage(ctx, params)
			if err != nil {
				yield(Summary{}, err)
				return
			}
			for _, s := range page.Data {
				if !yield(s, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			params.After = openai.String(page.Data[len(page.Data)-1].ID)
		}
	}
}

type listPage struct {
	Data    []Summary `json:"data"`
	HasMore bool      `json:"has_more"`
}

func (c *Client) listPage(ctx context.Context, params openai.BetaAgentSessionListParams) (listPage, error) {
	a, err := c.api.Ask(ctx, "list", about(""), func(ctx context.Context, opts ...option.RequestOption) error {
		_, err := c.sessions.List(ctx, params, opts...)
		return err
	})
	if err != nil || !a.Accepted() {
		return listPage{}, c.api.Refusal(a, err)
	}
	var page listPage
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return listPage{}, c.api.Unreadable(a, err)
	}
	if !page.HasMore {
		return page, nil
	}
	if len(page.Data) == 0 {
		return listPage{}, c.api.Unreadable(a, errors.New("an empty page that says there is more"))
	}
	if last := page.Data[len(page.Data)-1].ID; last == "" || last == params.After.Value {
		return listPage{}, c.api.Unreadable(a, errors.New("a page that does not lead on to the next"))
	}
	return page, nil
}
