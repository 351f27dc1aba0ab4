// Package redislock keeps locks in Redis.
package redislock
