// Package goredis lets locks use a go-redis client; see package redisconn.
package goredis
