import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { spanIdOf, traceIdOf } from '../../src/tracing/span-ids.ts';
import { until } from '../cli/cli-fixture.ts';
import { type CollectedSpan, OtlpCollector } from '../fakes/otlp-collector.ts';
import { freePort } from '../support/free-port.ts';
import { testInFullRun } from '../support/full-run.ts';
import { patience } from '../support/patience.ts';
import { TelegramScene } from './telegram-scene.ts';

let scene: TelegramScene;
let collector: OtlpCollector | null;

beforeEach(() => {
  collector = null;
});

afterEach(async () => {
  await scene.close();
  await collector?.close();
});

const tracing = (endpoint: string, more: object = {}) => ({ tracing: { endpoint, ...more } });

const treeOf = (spans: readonly CollectedSpan[]): string[] => {
  const nameOf = (id: string | null) => spans.find(({ spanId }) => spanId === id)?.name ?? 'nothing';
  return spans.map(({ name, parentSpanId }) => `${name} under ${nameOf(parentSpanId)}`).toSorted();
};

describe('with a collector', () => {
  test('one message is one trace from receive over the turn to deliver, without a word of what was said', async () => {
    collector = await OtlpCollector.start();
    const { url } = collector;
    scene = await TelegramScene.open([
      { toolCalls: [{ name: 'read_file', args: { path: 'sesame.txt' } }], usage: { input: 7, output: 2 } },
      { text: 'open sesame', usage: { input: 9, output: 3 } },
    ]);
    const gateway = scene.gateway(tracing(url, { service_name: 'loom', headers: { 'x-key': 'abc' } }));
    await gateway.start();
    scene.bot.say({ text: 'sesame please' });
    await scene.heardIn(42, 1);
    await until('the trace is there', () => collector?.named('deliver').length === 1);
    const { spans, resources, requests } = collector;
    expect(treeOf(spans)).toEqual([
      'deliver under turn',
      'model under turn',
      'model under turn',
      'receive under nothing',
      'tool under turn',
      'turn under receive',
    ]);
    const [turn] = collector.named('turn');
    const { 'moirai.turn_id': turnId, 'moirai.session_id': sessionId } = turn?.attributes ?? {};
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(String(turnId))]));
    expect(turn?.attributes).toMatchObject({
      ...{ 'moirai.platform': 'telegram', 'moirai.kind': 'chat', 'moirai.outcome': 'done', 'moirai.cuts': 0 },
      ...{ 'gen_ai.response.model': 'fake-model' },
      ...{ 'gen_ai.usage.input_tokens': 16, 'gen_ai.usage.output_tokens': 5 },
    });
    expect(collector.named('receive')[0]?.attributes).toEqual({
      ...{ 'moirai.platform': 'telegram', 'moirai.kind': 'chat' },
      ...{ 'moirai.session_id': sessionId, 'moirai.turn_id': turnId },
    });
    expect(collector.named('deliver')[0]?.attributes).toEqual({
      ...{ 'moirai.platform': 'telegram', 'moirai.attempts': 1, 'moirai.outcome': 'sent' },
      ...{ 'moirai.session_id': sessionId, 'moirai.turn_id': turnId },
    });
    // The file is not there.
    expect(collector.named('tool')[0]).toMatchObject({
      ...{ attributes: { 'gen_ai.tool.name': 'read_file' }, error: 'tool_failed' },
    });
    for (const { began, ended } of spans) expect([ended >= began, Date.now() - began < 60_000]).toEqual([true, true]);
    expect(resources[0]).toMatchObject({ 'service.name': 'loom' });
    expect(requests[0]?.headers['x-key']).toBe('abc');
    expect(JSON.stringify(requests.map(({ raw }) => raw))).not.toContain('sesame');
  });

  test('a turn that failed and a reply that was refused are errors, each try a span of its own', async () => {
    collector = await OtlpCollector.start();
    scene = await TelegramScene.open([{ status: 400, error: { message: 'no' } }]);
    const gateway = scene.gateway(tracing(`${collector.url}/`));
    await gateway.start();
    scene.bot.failNext('sendMessage', { code: 429, description: 'Too Many', parameters: { retry_after: 1 } });
    scene.bot.say({ text: 'x' });
    await scene.heardIn(42, 1);
    await until('the trace is there', () => collector?.named('deliver').length === 2);
    expect(collector.named('turn')[0]).toMatchObject({ attributes: { 'moirai.outcome': 'failed' } });
    expect(collector.named('turn')[0]?.error).toMatch(/^model_/);
    expect(collector.named('deliver').map(({ error, attributes }) => [error, attributes['moirai.attempts']])).toEqual([
      ['not_sent', 1],
      [null, 2],
    ]);
    expect(treeOf(collector.spans)).toContain('deliver under turn');
  });

  test('what is cut by a stop goes on in the same trace, and a stop hands over what is left', async () => {
    collector = await OtlpCollector.start();
    const { url } = collector;
    let asked = 0;
    scene = await TelegramScene.open(() => (asked++ === 0 ? { text: 'never', beforeMs: 60_000 } : { text: 'done' }));
    const gateway = scene.gateway({ ...tracing(url), gateway: { drain_timeout: '0s' } });
    await gateway.start();
    scene.bot.say({ text: 'x' });
    await until('the model is asked', () => asked === 1);
    await gateway.end('SIGTERM');
    expect(collector.named('cut')).toMatchObject([{ attributes: { 'moirai.outcome': 'cut' } }]);
    expect(collector.named('turn')).toEqual([]);
    await gateway.start();
    await until('it is answered', () => scene.textsIn(42).includes('done'));
    await gateway.end('SIGTERM');
    const [receive] = collector.named('receive');
    const [turn, ...more] = collector.named('turn');
    expect([turn?.attributes['moirai.cuts'], turn?.parentSpanId, more]).toEqual([1, receive?.spanId, []]);
    const [cut] = collector.named('cut');
    expect([cut?.traceId, cut?.parentSpanId]).toEqual([turn?.traceId, turn?.spanId]);
    // It reaches back over the run that was cut.
    expect(turn?.began).toBeLessThanOrEqual(cut?.began ?? 0);
    const reply = collector.named('deliver').find(({ traceId }) => traceId === turn?.traceId);
    expect(reply?.parentSpanId).toBe(spanIdOf('turn', String(turn?.attributes['moirai.turn_id'])));
  });

  test('only a part of the traces is sent if so wished', async () => {
    collector = await OtlpCollector.start();
    scene = await TelegramScene.open();
    const gateway = scene.gateway(tracing(collector.url, { sample: 0 }));
    await gateway.start();
    scene.bot.say({ text: 'x' });
    await scene.heardIn(42, 1);
    await gateway.end('SIGTERM');
    expect(collector.requests).toEqual([]);
  });
});

describe('without', () => {
  testInFullRun.each(['refuses connections', 'never answers'])(
    'replies arrive all the same when the collector %s, which is said once, and a stop is short',
    async (how) => {
      if (how === 'never answers') collector = await OtlpCollector.start({ hang: true });
      scene = await TelegramScene.open();
      const gateway = scene.gateway(tracing(collector?.url ?? `http://127.0.0.1:${await freePort()}`));
      await gateway.start();
      for (const n of [1, 2, 3]) {
        scene.bot.say({ text: `m${n}` });
        await scene.heardIn(42, n);
      }
      await until('it is said', () => gateway.log.includes('the collector does not take traces'), patience(15_000));
      scene.bot.say({ text: 'm4' });
      await scene.heardIn(42, 4);
      const began = performance.now();
      expect(await gateway.end('SIGTERM')).toBe(0);
      expect(performance.now() - began).toBeLessThan(patience(6000));
      expect(gateway.log.match(/does not take traces/g)).toHaveLength(1);
    },
    60_000,
  );

  test('nothing of it is loaded where it is not configured, and all of it where it is', async () => {
    scene = await TelegramScene.open();
    const loaded = async (settings: object): Promise<string[]> => {
      const gateway = scene.gateway({ ...settings });
      const [hook, found] = [join(gateway.home, 'hook.mjs'), join(gateway.home, 'found')];
      writeFileSync(found, '');
      writeFileSync(hook, LISTENER.replace('FOUND', found));
      await gateway.start({ NODE_OPTIONS: `--import=${hook}` }, true);
      await gateway.chat({ text: 'x' });
      await gateway.end('SIGTERM');
      return [...new Set(readFileSync(found, 'utf8').trim().split('\n'))].toSorted();
    };
    // Prometheus' client asks for the interface; that is no part of ours.
    expect(await loaded({})).toEqual(['@opentelemetry/api']);
    collector = await OtlpCollector.start();
    expect(await loaded(tracing(collector.url))).toContain('@opentelemetry/sdk-trace');
  });
});

/** Notes which packages of OpenTelemetry are asked for. */
const LISTENER = `
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
registerHooks({
  resolve(specifier, context, next) {
    const [name] = /@opentelemetry\\/[\\w-]+/.exec(specifier) ?? [];
    if (name !== undefined) appendFileSync('FOUND', name + '\\n');
    return next(specifier, context);
  },
});
`;
