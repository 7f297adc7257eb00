"""What JSON Schema has no words for.

A request that fits the document must be taken. Some values fit it by their form only: a time
may be long past, a task or a job may not exist, a length of time may be beyond its limits. Such values are
replaced before a request is sent that is meant to be taken, and its path names something that is
there. A request that is meant to be refused is sent as it was made.
"""

import datetime
import itertools
import json
import urllib.request

import schemathesis

count = itertools.count()


def near(days):
    """Returns a time so many days from now."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def always(value):
    return lambda: value


def in_days(days):
    return lambda: near(days)


SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:punctual/punctual/local/key"

# Values of fields, wherever in a body they stand. None leaves the field out.
FIELDS = {
    # What the jobs would do is not what is tested here, so they wait for a day.
    "task": always("echo"),
    "run_at": in_days(1),
    "delay": always("1d"),
    "until": in_days(2),
    "timeout": always("30s"),
    "start_within": always("10m"),
    "expire_after": always("1h"),
    "initial_delay": always("2s"),
    "max_delay": always("5m"),
    "window": always("1h"),
    # Calendars must fire some day, and not so often that a quota is used up.
    "cron": always("0 9 * * 1-5"),
    "every": always("1d"),
    "phase": always("1h"),
    "spread": always("5m"),
    "rrule": always("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9"),
    "timezone": always("Europe/Berlin"),
    "start_at": in_days(-30),
    "end_at": in_days(300),
    "exclude": always([]),
    # At most six weekdays; ranges and filters end after they begin.
    "weekly": always(["sat", "SUN"]),
    "yearly": always(["12-25", "02-29"]),
    "ranges": always([{"from": "2027-12-24", "to": "2027-12-26"}]),
    "after": in_days(-1),
    "dead_after": in_days(-1),
    "dead_before": in_days(1),
    "created_after": in_days(-1),
    "created_before": in_days(1),
    "due_after": in_days(-1),
    "due_before": in_days(1),
    "finished_after": in_days(-1),
    "finished_before": in_days(1),
    "within": always("10m"),
    # Only the server can make one.
    "cursor": None,
    # A tester's schema is rarely one that compiles.
    "payload_schema": always({"type": "object"}),
    # Nodes, expressions and params must fit each other; max_parallel and max_failed want for_each.
    "depends_on": always([]),
    "when": always("run.id != ''"),
    "for_each": always("${[1, 2]}"),
    "max_parallel": None,
    "max_failed": None,
    "params": always({}),
    "params_schema": always({"type": "object"}),
    "version": None,
    "from": None,
    "result": always({"rows": 3}),
    # A limit of work that is there; before_call makes it. 500 starts a second are the most.
    "limits": always([{"name": "known", "key": "acct-42"}]),
    "per": always("1h"),
    # It has a limit in bytes, and no control characters at any depth.
    "metadata": always({"ticket": 7, "by": ["a", None, {}]}),
    # Of the tenant that asks.
    "sign_with": always(SECRET),
    # Of a webhook: together they have a limit in bytes. Those of a payload are replaced with it.
    "headers": always({"x-team": "ops"}),
}

QUERY = {
    "cursor": None,
    "version": None,
    "wait": always("10ms"),
    "follow": always("10ms"),
    "task": always("echo"),
    "after": in_days(-1),
    "before": in_days(1),
    "dead_after": in_days(-1),
    "dead_before": in_days(1),
    "created_after": in_days(-1),
    "created_before": in_days(1),
    "due_after": in_days(-1),
    "due_before": in_days(1),
    "finished_after": in_days(-1),
    "finished_before": in_days(1),
    "from": in_days(1),
    "to": in_days(2),
    "step": always("1h"),
    # Usage by a tag needs a setting; texts of filters have no control characters.
    "by": always("task"),
    "actor": always("ana@example.com"),
    "resource": always("schedule/morning"),
    "between": always("01:00-05:00"),
    "timezone": always("Europe/Berlin"),
}


def mended(value, calendar=False):
    """Returns the value with all that must be replaced replaced."""
    if isinstance(value, list):
        return [mended(v, calendar) for v in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, inner in value.items():
        if name == "payload":
            out[name] = payload(inner)
        elif name == "dates":
            out[name] = [near(10)] if calendar else ["2027-12-25"]
        elif name == "catch_up" and isinstance(inner, dict):
            out[name] = mended(inner) | ({"after": "5m"} if "after" in inner else {})  # a length of time here
        elif name == "unique":
            if not isinstance(inner, dict) or "key" in inner:  # a patch of one that is not there needs its key
                out[name] = inner  # its until is a word, no time
        elif name == "after" and isinstance(inner, list):
            out[name] = inner  # jobs, which before_call replaces
        elif name not in FIELDS:
            out[name] = mended(inner, name in ("calendar", "calendars"))
        elif FIELDS[name]:
            out[name] = FIELDS[name]()
    if "task" in out:
        out["task"] = task_of(out.get("payload"))
    return out


# Fields of a calendar that only one form has, each form with the field that selects it first.
FORMS = [
    ["cron", "missing_hour", "repeated_hour"],
    ["every", "phase"],
    ["dates"],
    ["rrule", "missing_hour", "repeated_hour"],
]


def completed(method, path, body):
    """Returns the body as it fits what the document says in words only: which fields exclude or need each other."""
    if path.endswith("/jobs/{id}") and "allow_literals" in body and not {"payload", "metadata"} & body.keys():
        body["payload"] = {"a": 1}
    if path.endswith("/jobs/{id}/redrive"):
        if "payload" in body:
            body.pop("payload_patch", None)
        if "allow_literals" in body and not {"payload", "payload_patch", "tags"} & body.keys():
            body["payload"] = {"a": 1}
    if path.endswith("/schedules/{name}/run-now"):  # the schedule that is there makes jobs
        body.pop("params", None)
        if "allow_literals" in body and not {"payload", "payload_patch"} & body.keys():
            body["payload"] = {"a": 1}
    if path == "/v1/operations":
        body = operation(body)
    if path.endswith("/backfills"):
        body |= {"from": near(-3), "to": near(-1)}
    if "/exclusions/" in path and not {"dates", "ranges", "yearly", "weekly"} & body.keys():
        body["weekly"] = ["sat"]
    if path.endswith("/limits/{name}") and ("max_running" not in body or body["max_running"] is None):
        body["max_running"] = 5
    if path in ("/v1/schedules/{name}", "/v1/schedules/{name}/dry-run", "/v1/schedules/preview"):
        if body.get("calendar") is None:
            body.pop("calendar", None)
        if body.get("calendars") is None or "calendar" in body:
            body.pop("calendars", None)
        if method != "PATCH" and not {"calendar", "calendars"} & body.keys():
            body["calendar"] = {"every": "1d"}
    if "/schedules/{name}" in path and method == "PATCH":
        for kind in ("job", "dag"):
            if kind in body and (body[kind] is None or kind == "dag" and "job" in body):
                del body[kind]
        calendar = body.get("calendar")
        if isinstance(calendar, dict):
            form = next((f for f in FORMS if calendar.keys() & set(f)), [])
            for other in {name for f in FORMS for name in f} - set(form):
                calendar.pop(other, None)
        if not body:
            body["overlap"] = "allow"
    elif path in ("/v1/schedules/{name}", "/v1/schedules/{name}/dry-run") and not {"job", "dag"} & body.keys():
        body["job"] = {"task": "echo"}
    return body


# Fields of an operation that depend on its action: the filter of runs, statuses, and what it sets.
OF_RUNS = {"run_ids", "status", "dag", "schedule", "tags", "created_after", "created_before", "finished_after"}
STATUSES = {"jobs": "SCHEDULED", "runs": "SUCCEEDED", "letters": "DEAD"}
SETS = {
    "reprioritize": {"priority": "high"},
    "reschedule": {"delay": "1d"},
    "redrive": {"priority": "high", "delay": "1d", "payload_patch": {"a": 1}},
}


def operation(body):
    """Returns the body of an operation whose fields go with its action; it changes nothing that other cases use."""
    action = body["action"]
    about = "runs" if action.endswith("_runs") else "letters" if action in ("redrive", "purge") else "jobs"
    wanted = body.get("filter") or {}
    ids = "run_ids" if about == "runs" else "job_ids"
    if ids in wanted:
        wanted = {ids: wanted[ids]}
    wanted = {name: value for name, value in wanted.items() if name not in {"job_ids", "run_ids"} - {ids}}
    if about == "runs":
        wanted = {name: value for name, value in wanted.items() if name in OF_RUNS}
    if "status" in wanted:
        wanted["status"] = STATUSES[about]
    body |= {"filter": wanted, "all": True, "dry_run": True}
    body["set"] = SETS.get(action, {})
    if action not in ("redrive", "run_now", "reschedule"):
        body.pop("spread", None)
    if action not in ("redrive", "run_now", "retry_runs"):
        body.pop("canary", None)
    return body


HTTP = {"method", "url", "headers", "body", "auth", "sign_with"}


def task_of(value):
    """Returns the task whose payload this was made as."""
    if isinstance(value, dict) and "url" in value and set(value) <= HTTP:
        return "http"
    if isinstance(value, dict) and "function" in value and set(value) <= {"function", "input"}:
        return "lambda"
    return "echo"


def payload(value):
    """Replaces what the payload's task would refuse: targets, secrets, long headers, long sleep."""
    task = task_of(value)
    if task == "http":
        value = value | {"url": "https://example.com/"}
        if "auth" in value:
            value["auth"] = {"bearer": SECRET}
        if "sign_with" in value:
            value["sign_with"] = SECRET
        if isinstance(value.get("headers"), dict):
            value["headers"] = {f"x-{k[:50]}": v[:50] for k, v in list(value["headers"].items())[:1]}
    elif task == "echo" and isinstance(value, dict):
        value = value | {"sleep": "1ms", "fail": 0}
    return value


def ask(case, method, path, body=None):
    """Sends a request that is not under test and returns its answer."""
    request = urllib.request.Request(
        case.operation.schema.get_base_url().rstrip("/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={} if body is None else {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def job_for(case, verb):
    """Returns the id of a new job on which the verb will do."""
    job = {"task": "echo", "delay": "1d"}
    if verb == "redrive":
        job = {"task": "echo", "payload": {"fail": 1}, "retry": {"max_attempts": 1}}
    job_id = ask(case, "POST", "/v1/jobs", job)["job_id"]
    if verb == "redrive":
        ask(case, "GET", f"/v1/jobs/{job_id}?wait=10s")
    if verb == "DELETE":
        ask(case, "POST", f"/v1/jobs/{job_id}/cancel")
    return job_id


def name_something(case):
    """Has the path of a verb name something that is there."""
    method, path = case.operation.method.upper(), case.operation.path
    if "/jobs/{id}" in path:
        case.path_parameters["id"] = job_for(case, method if path.endswith("}") else path.rsplit("/", 1)[1])
    elif "/schedules/{name}/" in path:
        ask(case, "PUT", "/v1/schedules/known", {"calendar": {"every": "1d"}, "job": {"task": "echo"}})
        case.path_parameters["name"] = "known"
    of_dag = isinstance(case.body, dict) and isinstance(case.body.get("dag"), dict)
    if of_dag and "/schedules/" in path:
        # A dag that is there, at its only version, without params.
        nodes = {"a": {"task": "echo", "payload": {"sleep": "1ms"}}}
        ask(case, "PUT", "/v1/dags/scheduled", {"nodes": nodes})
        case.body["dag"]["name"] = "scheduled"
        for field, value in {"version": 1, "params": {}}.items():
            if case.body["dag"].get(field) is not None:
                case.body["dag"][field] = value
    if method == "PATCH" and "/schedules/" in path:
        # Whether a field fits depends on the form of the calendar that is patched.
        calendar = case.body.get("calendar") if isinstance(case.body, dict) else None
        form = {"every": "1d"} if "phase" in (calendar or {}) else {"cron": "0 9 * * *"}
        makes = {"dag": {"name": "scheduled"}} if of_dag else {"job": {"task": "echo"}}
        ask(case, "PUT", "/v1/schedules/patched", {"calendar": form} | makes)
        case.path_parameters["name"] = "patched"


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    if (headers.get("Idempotency-Key") or "").strip():
        # The same key with another body is refused before the body is looked at.
        headers["Idempotency-Key"] = f"{next(count)}-{headers['Idempotency-Key']}"[:256]
    for name in ("wait", "follow"):
        if name in (case.query or {}) and case.query[name] == "25s":
            case.query[name] = "10ms"  # the longest that fits; it would be waited for
    if not case.meta or case.meta.generation.mode.name != "POSITIVE":
        return
    if case.path in ("/v1/stats", "/v1/usage") and case.query:
        # The ends of a range are drawn apart from each other, and a step may be too short for them.
        for name in ("from", "to"):
            case.query.pop(name, None)
    if "If-Match" in headers:
        headers["If-Match"] = "*"
    for name in list(case.query or {}):
        if name in QUERY and QUERY[name]:
            case.query[name] = QUERY[name]()
        elif name in QUERY:
            del case.query[name]
    if isinstance(case.body, (dict, list)):
        case.body = mended(case.body)
    method, path = case.operation.method.upper(), case.operation.path
    if isinstance(case.body, dict):
        case.body = completed(method, path, case.body)
    for job in [case.body, *(case.body.get("jobs") or [])] if isinstance(case.body, dict) else []:
        if path.startswith("/v1/jobs") and job.get("task") in ("http", "lambda") and "run_at" not in job:
            job["delay"] = "1d"  # nothing is called
        if path.startswith("/v1/jobs") and job.get("after"):
            job["after"] = [job_for(case, "")]
    name_something(case)
    if isinstance(case.body, dict) and '"limits"' in json.dumps(case.body):
        ask(case, "PUT", "/v1/limits/known", {"max_running": 1000})
