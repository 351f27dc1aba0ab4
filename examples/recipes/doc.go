// Package recipes has the Go of docs/recipes.md, as it stands there, so that it is compiled and run.
package recipes
