// Package archive reads and writes the container of PT2 archives: a zip whose records are mostly stored, so that weights can
// be used where they lie in the file. It treats every file as hostile: records must lie inside the file and apart from each
// other, names must be unique and stay inside, and memory is spent only as the file's own size and the limits justify.
package archive
