import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { createApp } from '../../src/api/app.ts';
import { EventTail } from '../../src/api/event-tail.ts';
import { EventSchema, MessageSchema, SessionSchema, SubscriberSchema } from '../../src/api/schemas.ts';
import { apiFixture, ask } from './support/api-fixture.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

interface Specification {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const fixture = apiFixture();
const page = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8');
let specification: Specification;
let text: string;
beforeEach(async () => {
  const answer = await ask(fixture.api, '/openapi.json');
  specification = answer.json;
  text = answer.text;
});

const operations = () =>
  Object.entries(specification.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  );
const names = () =>
  operations()
    .map(({ name }) => name)
    .toSorted();

/** Every route of the router itself, as the specification would write it. */
function routes(): string[] {
  const { backend, engine } = fixture;
  const log = { error: () => undefined, warn: () => undefined };
  const closing = AbortSignal.abort();
  const tail = new EventTail(engine.store, log);
  const app = createApp({ backend, engine, log, tail, closing, version: '0' }, { apiKey: null, allowedOrigins: [] });
  const routed = app.routes.filter(({ method }) => method !== 'ALL');
  return [...new Set(routed.map(({ method, path }) => `${method} ${path.replace(/:([^/]+)/g, '{$1}')}`))].toSorted();
}

describe('the specification', () => {
  test('lists every route, and nothing else', () => {
    expect(names()).toEqual(routes());
    expect(names().length).toBeGreaterThan(20);
  });

  test('is sound: every reference leads somewhere, every parameter is declared, every operation has a name', () => {
    expect(specification.openapi).toBe('3.1.0');
    for (const [, reference = ''] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = reference
        .split('/')
        .reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], specification);
      expect([reference, typeof found]).toEqual([reference, 'object']);
    }
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation, name } of operations()) {
      const declared = (operation.parameters ?? []).filter((one) => one.in === 'path' && one.required === true);
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, parameter]) => parameter);
      expect([name, declared.map((one) => one.name)]).toEqual([name, inPath]);
      expect([name, operation.summary?.length > 0]).toEqual([name, true]);
      expect(Object.keys(operation.responses)).toContain('default');
      for (const { description } of Object.values(operation.responses)) expect(description).toBeTruthy();
    }
  });

  test('shows the shapes that are sent, field by field', async () => {
    const { json: chat } = await ask(fixture.api, '/v1/chat', { body: { text: 'hello', conversation: 'shape' } });
    await fixture.opened.store.write('subscribe', { name: 'shape', patterns: ['*'], from: 'now' });
    const session = (await ask(fixture.api, `/v1/sessions/${chat.session_id}`)).json;
    const messages = (await ask(fixture.api, `/v1/sessions/${chat.session_id}/messages`)).json.data;
    const events = (await ask(fixture.api, `/v1/sessions/${chat.session_id}/events`)).json.data;
    const subscribers = (await ask(fixture.api, '/v1/subscribers')).json.data;
    const same = (schema: z.ZodObject, value: object): void => {
      schema.parse(value);
      expect(Object.keys(value).toSorted()).toEqual(Object.keys(schema.shape).toSorted());
    };
    same(SessionSchema, session);
    for (const message of messages) same(MessageSchema, message);
    for (const subscriber of subscribers) same(SubscriberSchema, subscriber);
    for (const event of events) EventSchema.parse(event);
    expect([messages.length, events.length, subscribers.length]).toEqual([2, 3, 1]);
  });
});

describe('docs/http.md', () => {
  /** The rows of its table of endpoints: a method and a path each. */
  const documented = [...page.matchAll(/^\| (GET|POST|DELETE) \| `([^`]+)` \| .+ \|$/gm)].map(
    ([, method, path]) => `${method} ${path}`,
  );

  test('lists every route, and nothing else', () => {
    expect(documented.toSorted()).toEqual(names());
  });

  test('has an example of each', () => {
    const examples = [...page.matchAll(/^ {4}.*$/gm)].map(([line]) => line).join('\n');
    for (const { path } of operations()) {
      const example = new RegExp(
        `${path.replace(/\{[^}]+\}/g, '[^/\\s?]+').replaceAll('.', '\\.')}(?=[\\s?'"]|$)`,
        'm',
      );
      expect([path, example.test(examples)]).toEqual([path, true]);
    }
  });
});
