"""Has a job run by the generated client whose folder is the first argument, on the server of the second."""

import importlib
import pkgutil
import sys

sys.path.insert(0, sys.argv[1])

import punctual_client
from punctual_client.api.jobs import create_job, get_job
from punctual_client.models import CronCalendarRequest, EchoPayload, JobRequest, PreviewRequest
from punctual_client.api.schedules import preview_calendar

for module in pkgutil.walk_packages(punctual_client.__path__, "punctual_client."):
    importlib.import_module(module.name)

client = punctual_client.Client(base_url=sys.argv[2])
accepted = create_job.sync_detailed(client=client, body=JobRequest(task="echo", payload=EchoPayload(sleep="1ms")))
assert accepted.status_code == 202, accepted
done = get_job.sync(accepted.parsed.job_id, client=client, wait="20s")
assert done.status == "SUCCEEDED" and done.attempt == 1, done
draft = PreviewRequest(calendar=CronCalendarRequest(cron="0 9 * * 1-5"), count=3)
preview = preview_calendar.sync(client=client, body=draft)
assert len(preview.items) == 3, preview
