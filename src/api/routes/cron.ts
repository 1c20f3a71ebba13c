import { z } from '@hono/zod-openapi';
import { jobView } from '../../cron/job-view.ts';
import type { Api, ApiParts } from '../api.ts';
import { JobSchema, json, jsonBody, pageOf, route } from '../schemas.ts';

const jobParams = z.object({
  job: z.string().openapi({ description: 'The id of a job, any beginning of it that is its alone, or its name.' }),
});

const list = route('get', '/v1/cron', 'listJobs', {
  access: 'read',
  summary: 'What is scheduled, the next due first',
  responses: { 200: json(pageOf(JobSchema), 'All jobs.') },
});

const newJob = z.strictObject({
  schedule: z
    .string()
    .max(200)
    .openapi({ examples: ['0 9 * * 1-5', 'every 30m', 'at 2026-11-20T09:00', 'in 20m'] }),
  prompt: z.string().openapi({ description: 'What is to be done, in words for the agent.' }),
  name: z.string().nullish(),
  timezone: z.string().nullish().openapi({ description: 'IANA name; that of the configuration unless given.' }),
  deliver: z
    .string()
    .nullish()
    .openapi({ default: 'home', description: 'Who is told: `home`, `local` for nobody, or a target.' }),
});

const add = route('post', '/v1/cron', 'addJob', {
  access: 'admin',
  summary: 'Has something done at its time',
  request: { body: jsonBody(newJob, true) },
  responses: { 201: json(JobSchema, 'The job.') },
});

const remove = route('delete', '/v1/cron/{job}', 'removeJob', {
  access: 'admin',
  summary: 'Takes a job out; what runs of it goes on to its end',
  request: { params: jobParams },
  responses: { 200: json(JobSchema, 'The job as it was.') },
});

/** What may be done to a job. */
const CHANGES = {
  pause: 'Lets a job rest until it is resumed',
  resume: 'Lets a paused job go on',
  run: 'Makes a job due now, once',
} as const;

/** Scheduled jobs. The holder of the key is the operator, to whom all jobs belong. */
export function addCronRoutes(app: Api, { backend }: ApiParts): void {
  const { service, target } = backend.jobs;
  app.openapi(list, async (c) => {
    const jobs = await service.list(null);
    return c.json({ data: jobs.map(jobView), next: null }, 200);
  });
  app.openapi(add, async (c) => {
    const { schedule, prompt, name, timezone, deliver } = c.req.valid('json');
    const made = { target: await target(deliver ?? 'home'), madeIn: null, madeBy: null };
    return c.json(jobView(await service.add({ schedule, prompt, name, timezone, ...made })), 201);
  });
  app.openapi(remove, async (c) => c.json(jobView(await service.remove(c.req.valid('param').job, null)), 200));
  for (const verb of ['pause', 'resume', 'run'] as const) {
    const change = route('post', `/v1/cron/{job}/${verb}`, `${verb}Job`, {
      access: 'admin',
      summary: CHANGES[verb],
      request: { params: jobParams },
      responses: { 200: json(JobSchema, 'The job as it is now.') },
    });
    app.openapi(change, async (c) => c.json(jobView(await service[verb](c.req.valid('param').job, null)), 200));
  }
}
