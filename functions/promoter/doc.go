// Package promoter gets on their way, each minute, the jobs whose slices enter the horizon:
// a timer for each of them, or one for the whole slice where it is crowded. Schedules whose
// next time enters the horizon make their jobs.
//
// What always holds: it goes on from where the last pass ended, not from the clock, so a pass
// that takes longer than a minute, overlaps the next one or never came leaves no gap; slices
// it has passed are read again for ten minutes, because an index entry may show late. Arming
// the same again changes nothing. What the sweeper has put off it leaves to the sweeper.
//
// How it fails: a slice in which something could not be armed is noted and visited again by each
// pass. What lies more than the grace behind is the sweeper's.
package promoter
