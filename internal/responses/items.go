package responses

import (
	"encoding/json"
	"maps"
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

// output is the list of all items: those that were told, where the response's end shows
// the same ones, since the API wants a reasoning item back as it was when it was done; the
// shown ones otherwise; and those that were told where a service shows none.
func (i *items) output(shown []json.RawMessage) []json.RawMessage {
	if len(shown) < len(i.done) {
		told := make([]json.RawMessage, 0, len(i.done))
		for _, index := range slices.Sorted(maps.Keys(i.done)) {
			told = append(told, i.done[index])
		}
		return told
	}
	for index, item := range shown {
		if told, ok := i.done[index]; ok && itemID(told) != "" && itemID(told) == itemID(item) {
			shown[index] = told
		}
	}
	return shown
}
