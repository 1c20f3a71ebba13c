import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function configure(settings: object): void {
  writeFileSync(join(cli.home, 'config.yaml'), JSON.stringify(settings));
}

const NO_GATEWAY = 'No gateway runs in this home: it is done when one does.';

test.each([
  ['list', 'sessions list --kind cron'],
  ['add', 'every 6h'],
  ['remove', 'goes on to its end'],
  ['pause', 'until it is resumed'],
  ['resume', 'not made up for'],
  ['run', 'stays paused'],
])('cron %s explains itself', async (name, words) => {
  const { code, output } = await cli.moirai('cron', name, '-h');
  expect(code).toBe(0);
  expect(output.replaceAll(/\s+/g, ' ')).toContain(words);
});

test('a job is added, listed, paused, resumed, made due and removed without a gateway', async () => {
  expect(await cli.moirai('cron', 'list')).toMatchObject({ code: 0, output: 'Nothing is scheduled.\n' });
  const added = await cli.moirai('cron', 'add', '--name', 'news', '0 9 * * 1-5', 'what', 'is', 'new?');
  expect(added.output).toMatch(/^Scheduled: job_\w{8} “news”: 0 9 \* \* 1-5 \(.+\), next .+: what is new\?/);
  expect(added.output).toContain(NO_GATEWAY);
  const [job] = (await cli.json('cron', 'list')).data;
  expect(job).toMatchObject({ name: 'news', prompt: 'what is new?', state: 'active', deliver: 'home', last_run: null });
  expect((await cli.moirai('cron', 'list')).output).toMatch(
    /^ID +NAME +SCHEDULE +ZONE +NEXT +LAST +WHAT\njob_\w+ +news +0 9 \* \* 1-5 +\S+ +in \S+ +- +what is new\?\n$/,
  );
  expect(await cli.json('cron', 'pause', 'news')).toMatchObject({ state: 'paused', next_at: null });
  expect((await cli.moirai('cron', 'resume', job.id.slice(0, 7))).output).toMatch(/^Goes on: /);
  expect((await cli.moirai('cron', 'run', 'news')).output).toBe(`news is due now. ${NO_GATEWAY}\n`);
  expect((await cli.moirai('cron', 'remove', job.id)).output).toMatch(/^Removed: /);
  expect((await cli.json('cron', 'list')).data).toEqual([]);
});

test('the time zone is that of the configuration, unless it is given', async () => {
  configure({ sessions: { reset: { timezone: 'Asia/Tokyo' } } });
  expect(await cli.json('cron', 'add', '0 9 * * *', 'tea')).toMatchObject({ timezone: 'Asia/Tokyo' });
  const rome = await cli.json('cron', 'add', '--tz', 'Europe/Rome', 'at 2099-07-01T09:00', 'tea');
  expect(rome).toMatchObject({ timezone: 'Europe/Rome', next_at: '2099-07-01T07:00:00.000Z' });
  expect(await cli.json('cron', 'add', 'in 1h', 'tea', '--to', 'local')).toMatchObject({ deliver: 'local' });
});

describe('what cannot be is refused', () => {
  test.each([
    [['add', '61 * * * *', 'x'], 'bad_schedule', 'minute'],
    [['add', 'at 2020-01-01T09:00', 'x'], 'bad_schedule', 'is over'],
    [['add', 'every 1h', 'x', '--tz', 'Mars/Base'], 'bad_schedule', 'Mars/Base'],
    [['add', 'every 1h', ' '], 'bad_input', 'missing'],
    [['add', 'every 1h', 'x', '--to', 'mars'], 'target_unknown', 'mars'],
    [['add', 'every 1h', 'x', '--name', 'sweep'], 'bad_input', 'already'],
    [['run', 'swep'], 'job_not_found', 'did you mean "sweep"?'],
  ])('cron %o', async (args, code, words) => {
    await cli.json('cron', 'add', '--name', 'sweep', 'every 1h', 'sweep');
    const { code: exit, errors } = await cli.moirai('cron', ...args);
    expect(exit).not.toBe(0);
    expect(errors).toContain(`[${code}]`);
    expect(errors).toContain(words);
  });

  test('a command that is none, with the nearest', async () => {
    const { code, errors } = await cli.moirai('cron', 'lst');
    expect(code).toBe(2);
    expect(errors).toContain('list');
  });
});

test('what is made due without a gateway is done when one runs', async () => {
  configure({ gateway: { port: 0 } });
  await cli.json('cron', 'add', '--name', 'sweep', '--to', 'local', 'every 1h', 'sweep');
  expect((await cli.moirai('cron', 'run', 'sweep')).output).toBe(`sweep is due now. ${NO_GATEWAY}\n`);
  cli.start(['gateway', 'run', '--json']);
  const lastRun = async () => (await cli.json('cron', 'list')).data[0].last_run;
  await until('it has run', async () => (await lastRun())?.end_reason === 'cron_complete', 15_000);
});

test('a running gateway takes what is made due, and its transcript is kept', async () => {
  configure({ gateway: { port: 0 } });
  const gateway = cli.start(['gateway', 'run', '--json']);
  await new Promise((resume) => gateway.stdout.once('data', resume));
  const { id } = await cli.json('cron', 'add', '--name', 'sweep', '--to', 'local', 'every 1h', 'sweep');
  expect((await cli.moirai('cron', 'run', 'sweep')).output).toBe('sweep is due now.\n');
  const lastRun = async () => (await cli.json('cron', 'list')).data[0].last_run;
  await until('it has run', async () => (await lastRun())?.end_reason === 'cron_complete', 15_000);
  const { session_id } = await lastRun();
  expect((await cli.json('sessions', 'list', '--kind', 'cron')).data).toMatchObject([
    { id: session_id, key: `agent:main:cron:dm:${id}`, end_reason: 'cron_complete' },
  ]);
  expect((await cli.json('sessions', 'list')).data).toEqual([]);
  expect((await cli.moirai('sessions', 'messages', session_id)).output).toContain('sweep');
});
