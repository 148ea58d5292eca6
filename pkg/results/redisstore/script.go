package redisstore

import "github.com/redis/go-redis/v9"

// script is a Lua script that Redis knows by its hash. Each is replay-safe: the
// client may send it again when an answer was lost.
//
// Numbers of 64 bits stay strings in Lua, whose own numbers would round them or
// print them as 1e+15.
type script struct{ source, hash string }

func newScript(source string) *script {
	return &script{source: source, hash: redis.NewScript(source).Hash()}
}

// scripts lists all scripts, for loading them in one go.
var scripts = []*script{
	claimScript, completeScript, moveScript, readScript, turnScript,
	acquireScript, releaseScript, joinScript, attachScript, detachScript, attachedScript,
}

// luaNow defines now: the server's clock in milliseconds, as a string.
const luaNow = `
local clock = redis.call('TIME')
local now = clock[1] .. string.sub(string.format('%06d', clock[2]), 1, 3)
`

// luaLater defines later: a moment that is a number of milliseconds after now.
const luaLater = `
local function later(ms) return string.format('%.0f', tonumber(now) + tonumber(ms)) end
`

// luaFence refuses the script when ARGV[1] is a lower fence than the turn
// KEYS[1] has seen, and defines stamp, which records a higher one. Every turn
// that exists has a fence. Fences are compared as decimal numbers in strings.
const luaFence = `
local fence = redis.call('HGET', KEYS[1], 'f')
if fence and fence ~= ARGV[1] and (#ARGV[1] < #fence or (#ARGV[1] == #fence and ARGV[1] < fence)) then
  return 'FENCED'
end
local function stamp()
  if fence ~= ARGV[1] then redis.call('HSET', KEYS[1], 'f', ARGV[1]) end
end
`

// luaKeep defines keep, which lets the turn ARGV[4] live ms milliseconds from
// now. KEYS[3] is forgotten with its last turn, at the latest after ARGV[2].
// Keeping costs more than all else in a script, so a turn with unfinished calls
// is kept anew only when half its life is over; see luaStale.
const luaKeep = `
local function keep(ms)
  redis.call('PEXPIRE', KEYS[1], ms)
  redis.call('PEXPIRE', KEYS[2], ms)
  redis.call('ZADD', KEYS[3], later(ms), ARGV[4])
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
end
`

// luaStale defines stale: half of the turn's life of ms milliseconds is over.
const luaStale = `
local function stale(ms) return redis.call('PTTL', KEYS[1]) < tonumber(ms) / 2 end
`

// luaMeta defines parse and format for the first line of a call's entry; see
// parseMeta. since is the time from the claim to now.
const luaMeta = `
local function parse(line) return string.match(line, '^(.)(%d+)%.(%d+)%.(%d+)%.%d+%.(%d+)%.(.*)$') end
local function since(claimed) return string.format('%.0f', math.max(0, tonumber(now) - tonumber(claimed))) end
local function format(state, attempt, handover, claimed, changed, length, rest)
  return state .. attempt .. '.' .. handover .. '.' .. claimed .. '.' .. changed .. '.' .. length .. '.' .. rest
end
local function isopen(state) return state == 's' or state == 'h' or state == 'q' or state == 'r' or state == 'p' end
local function issaved(state) return state == 'S' or state == 'F' or state == 'U' end
`
