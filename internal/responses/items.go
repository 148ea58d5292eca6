package responses

import (
	"encoding/json"
	"slices"
)

// items are the places of a response's items.
type items struct {
	open []place
	next int
	done map[int]json.RawMessage
}

// place is where an item is that has begun.
type place struct {
	id    string
	index int
}

// added is the index of an item that begins: the given one, or the next.
func (i *items) added(given *int, item json.RawMessage) int {
	index := i.next
	if given != nil {
		index = *given
	}
	i.next = max(i.next, index+1)
	i.open = append(i.open, place{itemID(item), index})
	return index
}

// finished is the index of an item that is whole: the given one, or that of the item
// that has begun with the same id, or at all.
func (i *items) finished(given *int, item json.RawMessage) int {
	index, id := i.next, itemID(item)
	at := slices.IndexFunc(i.open, func(p place) bool {
		if given != nil {
			return p.index == *given
		}
		return p.id == id
	})
	switch {
	case given != nil:
		index = *given
	case at < 0 && len(i.open) > 0:
		at = 0
		fallthrough
	case at >= 0:
		index = i.open[at].index
	}
	if at >= 0 {
		i.open = slices.Delete(i.open, at, at+1)
	}
	i.next = max(i.next, index+1)
	if i.done == nil {
		i.done = map[int]json.RawMessage{}
	}
	i.done[index] = item
	return index
}

// output is the list of all items: the one that the response shows at its end, or, of
// a service that shows none, those that were told.
func (i *items) output(shown []json.RawMessage) []json.RawMessage {
	if len(shown) >= len(i.done) {
		return shown
	}
	told := make([]json.RawMessage, 0, i.next)
	for index := range i.next {
		if item, ok := i.done[index]; ok {
			told = append(told, item)
		}
	}
	return told
}
