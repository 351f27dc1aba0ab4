// Package repo tests the repository itself: who imports whom, that it builds on every platform, that every package says
// what it is, and that the links in its pages lead somewhere.
package repo
