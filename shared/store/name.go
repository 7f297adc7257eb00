package store

// Names of the writes that this package makes; shared/job says what they are for.
const (
	WriteContentForget = "content.forget"

	WriteDagDefinition = "dag.definition"
	WriteDagDelete     = "dag.delete"
	WriteDagPut        = "dag.put"
	WriteDagPutVersion = "dag.put_version"
	WriteDagUse        = "dag.use"

	WriteDueDefer       = "due.defer"
	WriteDueDeferFailed = "due.put_off"
	WriteDueMove        = "due.move"

	WriteExclusionCheck  = "exclusion.is"
	WriteExclusionDelete = "exclusion.delete"
	WriteExclusionPut    = "exclusion.put"

	WriteForecastSet = "forecast.set"

	WriteKeyRemember = "key.remember"

	WritePauseDelete = "pause.delete"
	WritePauseLifted = "pause.lifted"
	WritePausePut    = "pause.put"

	WriteRequestsFirst = "requests.first"
	WriteRequestsMore  = "requests.more"

	WriteRunForgetContent = "run.forget_content"
	WriteRunForgetListed  = "run.forget_listed"

	WriteSchedulePayload = "schedule.payload"

	WriteSettingHeld   = "setting.held"
	WriteSettingShards = "setting.shards"
	WriteSettingTables = "setting.tables"

	WriteTaskDelete = "task.delete"
	WriteTaskNote   = "task.note"
	WriteTaskPut    = "task.put"

	WriteWorkerEnd = "worker.end"
	WriteWorkerSee = "worker.see"

	WriteWaitingGive = "waiting.give"
	WriteWaitingTake = "waiting.take"
)
