// Package decide acts on what package job decides about one job: it sends firings and arms their
// timers, brings a job on at a wake-up, sends its dead letter, and brings a dead one back. It
// is the part that several stages share, and no stage itself.
//
// What always holds: every act starts from strongly read facts; every write carries the
// protocol's condition, and a refused one decides again from what stood there; a wake-up that
// leaves a job unfinished has given it its next one before anything is sent, so that a crash
// in between costs time, never the job; doing any of it twice does no more than doing it once,
// apart from messages that their receivers refuse.
//
// How it fails: with an error that says what was being done to which job. The job keeps a
// wake-up, so trying again is always allowed.
package decide
