// Package layout is what stands in the directory of the embedded store: the records of the locks, the files of the
// sessions, and the floor of the tokens. It knows how each is read and written so that nobody who is stopped or killed
// while he does it holds others up or leaves it torn. It does not know the rule by which claims are granted, nor who
// waits for whom.
//
// Nothing in it keeps state of a process but open files. A [Store] and a [Floor] are safe for concurrent use, as is a
// [SessionFile]; a [RecordFile] is read by anybody and written under its lock; a [Roll] belongs to its session, whose lock
// guards it.
package layout
