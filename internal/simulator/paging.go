package simulator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// fixtureCursor is the cursor openai-go's own tests send; with Config.Fixtures it is the start of every list.
const fixtureCursor = "after"

// pageQuery are the parameters of every list: after, limit (1 to 100, default 20) and order (default desc).
type pageQuery struct {
	after string
	limit int
	desc  bool
}

func (s *Simulator) parsePage(query url.Values) (pageQuery, error) {
	page := pageQuery{after: query.Get("after"), limit: 20, desc: true}
	if s.cfg.Fixtures && page.after == fixtureCursor {
		page.after = ""
	}
	if raw := query.Get("limit"); raw != "" {
		limit, err := strconv.Atoi(raw)
		if s.cfg.Fixtures && raw == "0" { // openai-go's own tests ask for that.
			limit = page.limit
		}
		if err != nil || limit < 1 || limit > 100 {
			return page, invalidRequest("limit must be between 1 and 100.")
		}
		page.limit = limit
	}
	switch order := query.Get("order"); order {
	case "", "desc":
	case "asc":
		page.desc = false
	default:
		return page, invalidRequest("order must be asc or desc.")
	}
	return page, nil
}

// renderPage returns the page of all, which is in ascending order, that the query asks for.
func renderPage[T any](s *Simulator, r *http.Request, all []T, id func(T) string, render func(T, []byte) []byte,
) ([]byte, error) {
	page, err := s.parsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if page.desc {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	if page.after != "" {
		at := slices.IndexFunc(all, func(t T) bool { return id(t) == page.after })
		if at < 0 {
			return nil, invalidRequest("The cursor %q is not in this list.", page.after)
		}
		all = all[at+1:]
	}
	more := len(all) > page.limit
	return renderList(all[:min(page.limit, len(all))], more, id, render), nil
}

// renderList returns one page; an empty page has null ids.
func renderList[T any](page []T, more bool, id func(T) string, render func(T, []byte) []byte) []byte {
	b := append([]byte(nil), `{"object":"list","data":[`...)
	for i, t := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = render(t, b)
	}
	b = append(b, ']')
	first, last := "", ""
	if len(page) > 0 {
		first, last = id(page[0]), id(page[len(page)-1])
	}
	b = appendKey(b, "first_id")
	b = appendStringOrNull(b, first)
	b = appendKey(b, "last_id")
	b = appendStringOrNull(b, last)
	return append(appendBoolField(b, "has_more", more), '}')
}
