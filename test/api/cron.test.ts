import { beforeEach, describe, expect, test } from 'vitest';
import { JobSchema } from '../../src/api/schemas.ts';
import { apiFixture, ask } from './support/api-fixture.ts';

const fixture = apiFixture();

beforeEach(async () => {
  for (const { id } of await fixture.backend.jobs.service.list(null))
    await fixture.opened.store.write('removeJob', { id });
});

function add(body: object) {
  return ask(fixture.api, '/v1/cron', { body });
}

async function list(): Promise<Record<string, unknown>[]> {
  return (await ask(fixture.api, '/v1/cron')).json.data;
}

describe('/v1/cron', () => {
  test('adds, lists, pauses, resumes, makes due and removes', async () => {
    const body = { schedule: '0 9 * * 1-5', prompt: 'what is new?', name: 'news', timezone: 'Europe/Rome' };
    const { status, json: job } = await add(body);
    expect(status).toBe(201);
    expect(Object.keys(JobSchema.parse(job))).toEqual(Object.keys(JobSchema.shape));
    expect(job).toMatchObject({ ...body, deliver: 'home', state: 'active', made_in: null, last_run: null });
    expect(await list()).toEqual([job]);
    const verb = async (name: string) => (await ask(fixture.api, `/v1/cron/news/${name}`, { method: 'POST' })).json;
    expect(await verb('pause')).toMatchObject({ state: 'paused', next_at: null });
    expect(await verb('resume')).toMatchObject({ state: 'active', next_at: job.next_at });
    expect(Date.parse((await verb('run')).next_at)).toBeLessThanOrEqual(Date.now());
    const gone = await ask(fixture.api, `/v1/cron/${job.id.slice(0, 8)}`, { method: 'DELETE' });
    expect(gone).toMatchObject({ status: 200, json: { id: job.id } });
    expect(await list()).toEqual([]);
  });

  test.each([
    [{ schedule: '61 * * * *', prompt: 'x' }, 'bad_schedule'],
    [{ schedule: 'every 1h', prompt: 'x', timezone: 'Mars/Base' }, 'bad_schedule'],
    [{ schedule: 'every 1h', prompt: ' ' }, 'bad_input'],
    [{ schedule: 'every 1h' }, 'bad_input'],
    [{ schedule: 'every 1h', prompt: 'x', when: 'now' }, 'bad_input'],
    [{ schedule: 'every 1h', prompt: 'x', deliver: 'mars' }, 'target_unknown'],
  ])('%o is refused', async (body, code) => {
    expect(await add(body)).toMatchObject({ status: 400, json: { error: { code } } });
    expect(await list()).toEqual([]);
  });

  test('a job that is not there is not found', async () => {
    for (const [path, method] of [
      ['/v1/cron/x', 'DELETE'],
      ['/v1/cron/x/pause', 'POST'],
      ['/v1/cron/x/resume', 'POST'],
      ['/v1/cron/x/run', 'POST'],
    ] as const) {
      expect(await ask(fixture.api, path, { method })).toMatchObject({
        ...{ status: 404, json: { error: { code: 'job_not_found' } } },
      });
    }
    expect(await ask(fixture.api, '/v1/cron/x')).toMatchObject({ status: 405 });
  });
});
