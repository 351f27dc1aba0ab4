// Package storetest has what the tests of stores share: what a user of locks does, one line a step; a [Harness] for the conformance suite made
// of a description of the [Store], whose drivers are each over a wire of their own; a random [History], which is compared with package line;
// and whatever happens to locks that is the same on several databases, a function each. Only tests import it.
package storetest
