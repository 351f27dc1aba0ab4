// Package browsertest has only tests: of the pages of package web as interlock serve shows them, in
// a real Chromium without a window.
//
// Whatever a test is about, it fails at an error of a script or in the console, at what the page's
// policy refuses, and at a request to another host; and each page, in each state of it, is looked
// over by axe-core. TestFaultsAreSeen shows pages that have one of these faults each.
//
// TestPictures makes the pictures of docs/web, which this writes anew:
//
//	go -C web/browsertest test -count=1 -run TestPictures -pictures "$PWD/docs/web"
package browsertest
