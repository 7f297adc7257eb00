package store

import (
	"context"
	"iter"
	"time"

	"punctual/shared/item"
	"punctual/shared/job"
	"punctual/shared/tenant"
)

// Jobs are the rows of jobs.
type Jobs interface {
	JobReader
	JobWriter
}

// JobReader reads rows by their keys.
type JobReader interface {
	// Row reads a job's row. An absent or forgotten job is a fault.NotFound.
	Row(ctx context.Context, k job.Key) (job.Row, error)
	// Rows reads up to 100 rows for a list, in the order asked. there is false for a row that is absent, forgotten or
	// unreadable.
	Rows(ctx context.Context, keys []job.Key) (rows []job.Row, there []bool, err error)
	// Nodes reads rows that a decision needs, in the order asked. An absent one is the zero Row; of a forgotten one
	// only the status is left.
	Nodes(ctx context.Context, keys []job.Key) ([]job.Row, error)
}

// JobWriter writes rows.
type JobWriter interface {
	// Accept puts a new job, in one transaction with other writes. Every new job goes through it: before the row, it
	// notes in which stretch of time its task has jobs, so that JobLists.Stretches finds them. A refusal is an
	// *item.Refused in which the row is write 0.
	Accept(ctx context.Context, r job.Row, more ...item.Write) error
	// Update reads a job's row, lets decide say what to write, and writes it. Where another writer was faster, it
	// reads the row once more and calls decide anew, at most 8 times; then the error is a fault.Conflict. It returns
	// the row as it is after the write. If nothing is written, or the write deletes the row, it returns the row that
	// decide saw. For an absent or forgotten job the error is a fault.NotFound, and decide is not called.
	//
	// What decide returns:
	//   - no writes: the row stays as it is.
	//   - one write, of the row, with the condition under which the decision holds.
	//   - several writes: they are one transaction, and one of them is the row's.
	//     The transaction's condition that fails alone ends the update with its Else, where it has one.
	//   - an error: it ends the update. Only an *item.Refused, of a write that decide made itself, makes
	//     Update read the row and decide once more.
	//
	// A write whose answer was lost is repeated by the adapter and is then refused because of its own first try.
	// Update recognises that: where the row, and every item that is put with it, already is what it was to become,
	// the write is done. Two callers who decide exactly the same in the same millisecond therefore both succeed. What
	// they do next happens twice, and the process that receives it tolerates that. If a third writer came between the
	// first try and its repetition, decide is called once more and finds in the row what it decided before.
	Update(ctx context.Context, k job.Key, decide func(job.Row) ([]item.Write, error)) (job.Row, error)
	// UpdateWithClaim is Update for a decision that needs the job's claim too: one request reads both. The claim is
	// read once, so decide uses only what never changes in it, such as the outcome of an attempt. The zero Claim is
	// the absent one. decide must not keep the pointers. It returns the row that decide saw last, nil if it saw none.
	UpdateWithClaim(
		ctx context.Context, k job.Key, decide func(*job.Row, *job.Claim) ([]item.Write, error),
	) (*job.Row, error)
	// PutRow does the write that turns the row into after. An adapter repeats a write whose answer was lost, and its
	// own first try then refuses it. So where the row already is after, that is no refusal. Two callers who decide
	// exactly the same in the same millisecond both succeed; what follows is then done twice, which the process that
	// receives it tolerates.
	PutRow(ctx context.Context, after job.Row, w item.Write) error
	// WriteRow does one write of a row and returns the row as it then is. OldRow reads what was there from a refusal.
	WriteRow(ctx context.Context, w item.Write) (job.Row, error)
	// KeepJob lets the row of a job that has ended, its contents, its logs and its claim live until then. What lives
	// longer, or no longer exists, stays as it is. The row comes last: if it lives so long, so does everything.
	KeepJob(ctx context.Context, k job.Key, until time.Time) error
	// NoteOpen has the lists of its task find a job for as long as it may stay open without a time of its own. It
	// comes before the write that lets the job wait for the end of a pause, or behind another.
	NoteOpen(ctx context.Context, r job.Row) error
}

// JobLists reads jobs, and the attempts at one, in lists and pages.
type JobLists interface {
	// Newest iterates over a tenant's jobs from the newest down: those with from ≤ id < before, where "" leaves a
	// side open. It costs about twice the rows that the caller takes, in pages that grow; expect is how many the
	// caller probably takes. A row that cannot be read comes as an error of kind fault.Undecodable with its key, and
	// the iteration goes on; any other error ends it. Reads are eventually consistent.
	Newest(ctx context.Context, t tenant.ID, from, before job.ID, expect int) iter.Seq2[job.Row, error]
	// NewestOfTask is Newest for the jobs of one task that are in these partitions.
	NewestOfTask(
		ctx context.Context, t tenant.ID, task string, parts []int, from, before job.ID,
	) iter.Seq2[job.Row, error]
	// Stretches iterates over the stretches in which a tenant's task may have jobs that are older than before (zero:
	// any), the newest first. Those that touch and are in the same partitions are one.
	Stretches(ctx context.Context, t tenant.ID, task string, before time.Time) iter.Seq2[Stretch, error]
	// DeadLetters iterates over a tenant's dead jobs from the newest down: those that died at from ≤ dead_at <
	// before; a zero time leaves that side open. Jobs of one millisecond come in falling order of their ids. Errors
	// are as in Newest.
	DeadLetters(ctx context.Context, t tenant.ID, from, before time.Time, expect int) iter.Seq2[DeadLetter, error]
	// DeadKeys reads the keys of a tenant's dead jobs, in no order. If there are more than most, all is false.
	DeadKeys(ctx context.Context, t tenant.ID, most int) (keys []job.Key, all bool, err error)
	// WakingKeys reads the keys of a tenant's jobs that are due by now and wake up in one of these slices, in no
	// order. If there are more than most, all is false. The slices hold the jobs of all tenants and are read whole.
	WakingKeys(
		ctx context.Context, t tenant.ID, slices []string, now time.Time, most int,
	) (keys []job.Key, all bool, err error)
	// Attempts reads a page of a job's ended attempts, oldest first, from those after a position (job.Attempt.Place;
	// 0: all); limit is at least 1. The newest are on the row. Older ones, lost starts and those with a long error
	// are in items of their own, which count where both have one. more says that the page is not the last. One that
	// cannot be read is left out.
	Attempts(ctx context.Context, r job.Row, after int64, limit int) (attempts []job.Attempt, more bool, err error)
}

// IdempotencyKeys are the keys under which requests are remembered.
type IdempotencyKeys interface {
	// Remembered reads what a key refers to; false if it refers to nothing, or no longer.
	Remembered(ctx context.Context, t tenant.ID, key string, now time.Time) (Remembered, bool, error)
}

// Followers are the jobs that wait for the end of another.
type Followers interface {
	// Follow notes that child comes after parent. It returns the zero Row if the process that ends the parent will
	// notify the child, and the row of a parent that has ended, also of a forgotten one. It is safe to repeat.
	Follow(ctx context.Context, parent, child job.Key, now time.Time) (over job.Row, err error)
	// Followers reads up to 100 of the jobs that come after parent and were not notified of its end.
	Followers(ctx context.Context, parent job.Key) ([]job.Key, error)
	// Unfollow removes child from the jobs that are notified of the end of parent.
	Unfollow(ctx context.Context, parent, child job.Key) error
}

// Claims are the claims of jobs, which workers write.
type Claims interface {
	ClaimReader
	// WriteClaim does one write of a claim and returns the claim as it then is.
	WriteClaim(ctx context.Context, w item.Write) (job.Claim, error)
}

// ClaimReader reads claims. The zero Claim is the absent one.
type ClaimReader interface {
	// Claim reads a job's claim.
	Claim(ctx context.Context, k job.Key) (job.Claim, error)
	// PeekClaim is Claim at half the price, and eventually consistent: what was written in the last second may be
	// missing, so nothing is decided by what is not there.
	PeekClaim(ctx context.Context, k job.Key) (job.Claim, error)
	// Claims reads the claims of up to 100 jobs for a list, in the order asked. One that cannot be read counts as
	// absent.
	Claims(ctx context.Context, keys []job.Key) ([]job.Claim, error)
}

// LogReader reads the logs of attempts.
type LogReader interface {
	// AttemptLog reads the log of an attempt from a position on, and returns the position after what it has read. A
	// log that no line was written to is empty. Where an attempt was started more often than a few times, the text may
	// end before the last start: then a read from next goes on.
	AttemptLog(ctx context.Context, k job.Key, attempt, from int64) (text string, next int64, err error)
}

// Contents are what a job has outside its row: payload, labels, attempts, result.
type Contents interface {
	ContentReader
	ContentWriter
}

// ContentReader reads contents, wherever they are.
type ContentReader interface {
	// Payload reads a job's payload; nil is none.
	Payload(ctx context.Context, r job.Row) ([]byte, error)
	// Result reads a job's result; "" is none. One that no longer exists is a fault.NotFound. Where the row says that
	// it is partial, it is not the value that the work returned.
	Result(ctx context.Context, r job.Row) (string, error)
	// ContentsOf reads what a job that is made of another one takes over: payload and labels. Contents that the row
	// names and that no longer exist are a fault.NotFound.
	ContentsOf(ctx context.Context, r job.Row) (job.Contents, error)
	// LabelsOf reads the labels of jobs, in the order of the rows. A row that says it has none costs nothing; labels
	// that are missing, because the job is just being forgotten, count as none.
	LabelsOf(ctx context.Context, rows ...job.Row) ([]job.Labels, error)
}

// ContentWriter writes contents, and deletes them. Each method is safe to repeat.
type ContentWriter interface {
	// KeepContents writes those contents of a job that are not in its row, to where the row says. It comes before the
	// row is written.
	KeepContents(ctx context.Context, r job.Row, c job.Contents) error
	// CopyResult gives a row that is about to be put the result of another one. An object is copied at once, under a
	// name that only copies of this result have; an item is a write that goes with the row.
	CopyResult(ctx context.Context, from job.Row, to *job.Row) ([]item.Write, error)
	// PutPayload writes a payload that is not inline to where the row says. It comes before the row is written.
	PutPayload(ctx context.Context, r job.Row, payload []byte) error
	// ForgetPayload deletes the payload that a row names in the bucket, if it names one there. An item is deleted
	// with the row.
	ForgetPayload(ctx context.Context, r job.Row) error
	// ForgetContents deletes the items and objects of a job whose row was deleted: payload, result, labels, attempts.
	// It empties the logs of the attempts, up to that of the row; of the zero attempt there is none.
	// What a failure leaves expires by itself.
	ForgetContents(ctx context.Context, r job.Row) error
}

// ResultWriter writes what work returned. Workers have no other port that writes contents.
type ResultWriter interface {
	// PutResult writes the object of a result. It comes before the outcome that names it, and is safe to repeat.
	PutResult(ctx context.Context, k job.Key, ref string, result []byte) error
}
