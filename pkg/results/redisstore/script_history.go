package redisstore

import (
	"fmt"

	"github.com/callfan/callfan/pkg/results/internal/history"
)

// luaHistory splits a call's entry and lengthens its history; see package history
// for the text. Scripts append steps and never read them, with one exception: a
// note without a change is compared with the latest one.
//
//	split   an entry's first line and its history
//	step    the text of one step
//	cut     leaves out the middle of a history that is too long
//	latest  the latest step's note
var luaHistory = fmt.Sprintf(`
local function split(meta)
  local at = string.find(meta, '\n', 1, true)
  if not at then return meta, '' end
  return string.sub(meta, 1, at - 1), string.sub(meta, at)
end
local function step(state, after, attempt, handover, note)
  if note ~= '' then note = ' ' .. note end
  return '\n' .. state .. after .. '.' .. attempt .. '.' .. handover .. note
end
local function cut(history)
  if #history <= %[1]d then return history end
  local kept = 1
  for _ = 1, %[2]d do kept = string.find(history, '\n', kept + 1, true) end
  local newest = string.find(history, '\n', #history - %[1]d + kept, true)
  return string.sub(history, 1, kept - 1) .. string.sub(history, newest)
end
local function latest(history) return string.match(history, '.*\n[^ \n]* ([^\n]*)$') or '' end
`, history.Max, history.First)
