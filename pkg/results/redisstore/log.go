package redisstore

import "github.com/redis/go-redis/v9/logging"

// SilenceClient turns off the lines that go-redis writes to standard error on
// its own, several per failed connection. The same failures are returned as
// errors by the store. It holds for the whole process; call it from main.
func SilenceClient() { logging.Disable() }
