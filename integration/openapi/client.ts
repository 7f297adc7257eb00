// Works by types made of the document, on the server of the first argument. What does not fit them does not compile.
// Bodies say which schema they satisfy: openapi-fetch alone lets a field pass that the schema does not have.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Schemas = components["schemas"];

const client = createClient<paths>({ baseUrl: process.argv[2] });

async function jobs(): Promise<void> {
  const { data: accepted, response } = await client.POST("/v1/jobs", {
    params: { header: { "Idempotency-Key": "a-job" } },
    body: { task: "echo", payload: { sleep: "1ms" }, tags: { made: "typescript" } } satisfies Schemas["JobRequest"],
  });
  assert.equal(response.status, 202);
  assert(accepted);
  const path = { id: accepted.job_id };
  const { data: over } = await client.GET("/v1/jobs/{id}", { params: { path, query: { wait: "20s" } } });
  assert.equal(over?.status, "SUCCEEDED");
  const { data: read } = await client.GET("/v1/jobs/{id}", { params: { path } });
  assert.equal(read?.attempt, 1);
  assert.deepEqual(read.tags, { made: "typescript" });
}

async function refusals(): Promise<void> {
  const body = { task: "echo", delay: "soon" } satisfies Schemas["JobRequest"];
  const { error, response } = await client.POST("/v1/jobs", { body });
  assert.equal(response.status, 400);
  assert(error);
  assert.equal(error.code satisfies Schemas["Problem"]["code"], "invalid_value");
  assert.equal(error.errors?.[0]?.pointer, "/delay");
  const { error: absent } = await client.GET("/v1/schedules/{name}", { params: { path: { name: "absent" } } });
  assert.equal(absent?.code, "not_found");
}

// pages yields the jobs of a task, newest first.
async function* pages(task: string): AsyncGenerator<Schemas["JobView"][]> {
  let cursor: string | undefined;
  do {
    const { data } = await client.GET("/v1/jobs", { params: { query: { task, limit: 2, cursor } } });
    assert(data);
    yield data.items;
    cursor = data.next_cursor ?? undefined;
  } while (cursor);
}

async function lists(): Promise<void> {
  const task = "listed";
  await client.PUT("/v1/tasks/{name}", {
    params: { path: { name: task } },
    body: { executor: "echo", payload_schema: { type: "object", maxProperties: 1 } } satisfies Schemas["TaskRequest"],
  });
  const jobs = [1, 2, 3].map((n) => ({ task, payload: { n }, delay: "1h" }) satisfies Schemas["BatchJobRequest"]);
  const { data: batch } = await client.POST("/v1/jobs/batch", { body: { jobs } });
  assert.equal(batch?.accepted, 3);
  const found: string[] = [];
  let n = 0;
  for await (const items of pages(task)) {
    n += 1;
    found.push(...items.map((job) => job.job_id));
  }
  assert.equal(new Set(found).size, 3);
  assert(n >= 2, `three jobs at two a page are on ${n}`);
}

async function schedules(): Promise<void> {
  const path = { name: "typescript" };
  const { data: put, response } = await client.PUT("/v1/schedules/{name}", {
    params: { path },
    body: {
      calendar: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" },
      job: { task: "echo" },
      overlap: "skip",
    } satisfies Schemas["ScheduleRequest"],
  });
  assert.equal(response.status, 201);
  assert.equal(put?.job?.task, "echo");
  const { data: preview } = await client.GET("/v1/schedules/{name}/preview", {
    params: { path, query: { count: 3 } },
  });
  assert.equal(preview?.items.length, 3);
  assert.match(preview.items[0]?.local ?? "", /T09:00:00/);
  const { response: gone } = await client.DELETE("/v1/schedules/{name}", { params: { path } });
  assert.equal(gone.status, 204);
}

async function dags(): Promise<void> {
  const path = { name: "typescript" };
  await client.PUT("/v1/dags/{name}", {
    params: { path },
    body: {
      params: { day: 1 },
      params_schema: { type: "object", properties: { day: { type: "integer" } } },
      nodes: { first: { task: "echo" }, then: { task: "echo", depends_on: ["first"], payload: "${params.day}" } },
    } satisfies Schemas["DagRequest"],
  });
  const { data: run } = await client.POST("/v1/dags/{name}/runs", {
    params: { path, header: { "Idempotency-Key": "a-run" } },
    body: { params: { day: 7 } } satisfies Schemas["DagRunRequest"],
  });
  assert(run);
  const { data: over } = await client.GET("/v1/runs/{id}", {
    params: { path: { id: run.run_id }, query: { wait: "20s" } },
  });
  assert.equal(over?.status, "SUCCEEDED");
  assert.equal(over.nodes?.["then"]?.status, "SUCCEEDED");
}

async function deadLetters(): Promise<void> {
  const body = { task: "echo", payload: { fail: 1 }, retry: { max_attempts: 1 } } satisfies Schemas["JobRequest"];
  const { data: accepted } = await client.POST("/v1/jobs", { body });
  assert(accepted);
  await client.GET("/v1/jobs/{id}", { params: { path: { id: accepted.job_id }, query: { wait: "20s" } } });
  const { data: dead } = await client.GET("/v1/dead-letters", { params: { query: { task: "echo" } } });
  const letter = dead?.items.find((item) => item.job_id === accepted.job_id);
  assert.equal(letter?.status, "DEAD");
  assert.equal(letter.attempts[0]?.attempt, 1);
}

// mistakes is never called: each line below one of its comments must not compile, or tsc reports the comment.
export async function mistakes(job: Schemas["JobView"], problem: Schemas["Problem"]): Promise<void> {
  // @ts-expect-error: a field that an answer does not have
  job.state;
  // @ts-expect-error: a status that no job has
  if (job.status === "DONE") return;
  // @ts-expect-error: a code that no problem has
  if (problem.code === "bad") return;
  // @ts-expect-error: a field that a request does not have
  await client.POST("/v1/jobs", { body: { task: "echo", when: "1h" } satisfies Schemas["JobRequest"] });
  // @ts-expect-error: a field that is missing
  await client.POST("/v1/jobs", { body: {} });
  // @ts-expect-error: a calendar of no form
  await client.POST("/v1/schedules/preview", { body: { calendar: { timezone: "UTC" } } });
  // @ts-expect-error: a path that is not served
  await client.GET("/v1/job");
  // @ts-expect-error: a method that the path does not have
  await client.DELETE("/v1/jobs");
  // @ts-expect-error: a parameter of the path that is missing
  await client.GET("/v1/jobs/{id}", { params: { query: { wait: "1s" } } });
}

await jobs();
await refusals();
await lists();
await schedules();
await dags();
await deadLetters();
