package schedule

// Names of the writes that this package makes; shared/job says what they are for.
const (
	WriteAdvance         = "schedule.advance"
	WriteCheck           = "schedule.is"
	WriteCountDead       = "schedule.count_dead"
	WriteCreate          = "schedule.create"
	WriteDelete          = "schedule.delete"
	WriteEdit            = "schedule.edit"
	WriteEnd             = "schedule.end"
	WriteForgetDead      = "schedule.forget_dead"
	WriteHold            = "schedule.hold"
	WriteNotify          = "schedule.notify"
	WritePause           = "schedule.pause"
	WritePayloadReplaced = "schedule.payload_replaced"
	WriteRelease         = "schedule.release"
	WriteResume          = "schedule.resume"
	WriteSpend           = "schedule.spend"

	WriteLateStart = "late.start"

	WriteRunCount = "run.count"
	WriteRunNote  = "run.note"

	WriteSlotTake     = "slot.take"
	WriteSlotTakeFrom = "slot.take_from"
	WriteSlotWait     = "slot.wait"
)
