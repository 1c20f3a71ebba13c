import { readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { findCycles, findViolations, packagesLoadedWith, type Table } from './support/architecture.ts';

/** Who may know whom. A layer may grow, and a better layer may come; a cycle may not. */
const table: Table = {
  layers: {
    errors: { layers: [], packages: [], builtins: false },
    markdown: { layers: [], packages: [], builtins: false },
    log: { layers: ['errors'] },
    settings: { layers: ['errors', 'lifecycle'], packages: [] },
    config: {
      layers: ['errors', 'lifecycle', 'settings', 'platforms'],
      entrances: { platforms: ['platforms/registry.ts'] },
      environment: true,
    },
    lifecycle: { layers: ['errors'], packages: ['temporal-polyfill'], builtins: false },
    store: { layers: ['errors', 'lifecycle'] },
    queue: { layers: ['errors', 'store'] },
    events: { layers: ['errors', 'lifecycle', 'store', 'queue'] },
    engine: { layers: ['errors', 'lifecycle', 'store', 'queue'] },
    extensions: {
      layers: ['errors', 'log', 'lifecycle', 'store', 'queue', 'events', 'memory', 'platforms'],
      entrances: { platforms: ['platforms/platform.ts'] },
    },
    memory: {
      layers: ['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'events', 'engine', 'agent', 'turns'],
    },
    agent: { layers: ['errors', 'log', 'lifecycle', 'store', 'config'] },
    turns: { layers: ['errors', 'log', 'lifecycle', 'store', 'queue', 'engine', 'agent', 'people'] },
    outbound: {
      layers: [
        ...['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'events', 'engine'],
        ...['agent', 'turns', 'people', 'platforms'],
      ],
    },
    inbound: {
      layers: [
        ...['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'engine', 'agent', 'turns'],
        ...['people', 'platforms', 'outbound'],
      ],
    },
    cron: {
      layers: [
        ...['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'engine', 'agent', 'turns'],
        ...['platforms', 'outbound'],
      ],
    },
    commands: {
      layers: ['errors', 'lifecycle', 'store', 'engine', 'agent', 'turns', 'people', 'memory', 'outbound', 'cron'],
    },
    api: {
      layers: ['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'engine', 'agent', 'turns', 'cron', 'people'],
    },
    people: { layers: ['errors', 'lifecycle', 'store', 'queue', 'engine', 'config', 'agent', 'platforms'] },
    tracing: { layers: ['log', 'config', 'agent', 'turns'] },
    platforms: {
      layers: ['errors', 'settings', 'markdown', 'lifecycle'],
      folderLayers: ['errors', 'settings', 'markdown'],
      hidden: ['platforms/registry.ts', 'platforms/served.ts'],
    },
    space: { layers: ['errors', 'api', 'markdown'] },
    gateway: {
      layers: [
        ...['errors', 'log', 'config', 'lifecycle', 'store', 'queue', 'events', 'engine'],
        ...['extensions', 'memory', 'agent', 'turns', 'commands', 'cron', 'api', 'platforms', 'people', 'tracing'],
        ...['inbound', 'outbound'],
      ],
    },
    cli: {
      layers: [
        ...['errors', 'config', 'lifecycle', 'store', 'queue', 'events', 'engine', 'extensions', 'memory', 'agent'],
        ...['turns', 'commands', 'cron', 'api', 'log', 'platforms', 'people', 'space', 'gateway', 'tracing'],
        ...['settings', 'inbound', 'outbound'],
      ],
      environment: true,
    },
    // The door for other people's code, a file of its own.
    'index.ts': { layers: ['extensions'], packages: [], builtins: false },
  },
  owned: {
    ...{ 'node:sqlite': 'store', pg: 'store' },
    ...{ '@opentelemetry/api': 'tracing', '@opentelemetry/sdk-trace': 'tracing' },
  },
};

const src = fileURLToPath(new URL('../src', import.meta.url));

function readSources(): Map<string, string> {
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll(sep, '/'));
  const files = paths.filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$/.test(path));
  return new Map(files.map((path) => [path, readFileSync(`${src}/${path}`, 'utf8')]));
}

describe('the import table', () => {
  test('keeps to the table', () => {
    const sources = readSources();
    expect(sources.size).toBeGreaterThan(5);
    expect(findViolations(sources, table)).toEqual([]);
  });

  test('the configuration loads only these packages: a platform loads its own when it is made', () => {
    expect([...packagesLoadedWith('config/load-config.ts', readSources())].sort()).toEqual([
      'temporal-polyfill',
      'yaml',
    ]);
  });

  test('has every folder of src in the table', () => {
    const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => name).filter((name) => !(name in table.layers))).toEqual([]);
  });

  test('has no knot in the table itself, and nobody knows the command line', () => {
    const graph = new Map(Object.entries(table.layers).map(([name, { layers }]) => [name, layers]));
    expect(findCycles(graph)).toEqual([]);
    expect([...graph.values()].flat()).not.toContain('cli');
    expect([...graph.values()].flat().filter((name) => !graph.has(name))).toEqual([]);
  });
});

test('the path of one message in AGENTS.md names at most 15 files, and all of them exist', () => {
  const page = readFileSync(fileURLToPath(new URL('../AGENTS.md', import.meta.url)), 'utf8');
  const [, drawing = ''] = /^One message, [\s\S]*?\n\n((?: {4}.*\n)+)/m.exec(page) ?? [];
  const files = drawing.split('->').map((file) => file.trim());
  expect(files.length).toBeGreaterThan(10);
  expect(files.length).toBeLessThanOrEqual(15);
  const sources = readSources();
  expect(files.filter((file) => !sources.has(file))).toEqual([]);
});

describe('the checker reports', () => {
  test.each([
    ['an import', 'lifecycle/a.ts', `import { open } from '../store/open.ts';`],
    ['an import over several lines', 'lifecycle/a.ts', `import {\n  open,\n  close,\n} from '../store/open.ts';`],
    ['a type import', 'lifecycle/a.ts', `import type { Store } from '../store/port.ts';`],
    ['a type named type', 'lifecycle/a.ts', `import type from '../store/port.ts';`],
    ['an import for its effect', 'lifecycle/a.ts', `import "../store/open.ts"`],
    ['a re-export', 'lifecycle/a.ts', `export * as store from '../store/open.ts';`],
    ['a dynamic import', 'lifecycle/a.ts', `const { open } = await import('../store/open.ts');`],
    ['a type in place', 'lifecycle/a.ts', `let store: import('../store/port.ts').Store;`],
    ['an import behind a comment', 'lifecycle/a.ts', `/* 'why */ import { open } from '../store/open.ts'; // "`],
    ["another thread's code", 'lifecycle/a.ts', `new Worker(new URL('../store/worker.ts', import.meta.url));`],
    ["a module of Node's", 'lifecycle/a.ts', `import { readFile } from 'node:fs/promises';`],
    ["a module of Node's without its prefix", 'lifecycle/a.ts', `import fs from 'fs';`],
    ['a package that is not on the list', 'lifecycle/a.ts', `import { z } from 'zod';`],
    ['a driver outside the store', 'engine/a.ts', `import pg from 'pg';`],
    ['an engine outside the store', 'engine/a.ts', `const { DatabaseSync } = require('node:sqlite');`],
    ['a read of the environment', 'engine/a.ts', `const home = process.env.HOME;`],
    ['a read of the environment by import', 'engine/a.ts', `import { env } from 'node:process';`],
    ['a platform that knows a sibling', 'platforms/slack/a.ts', `import { send } from '../discord/send.ts';`],
    ['a platform that knows the agent', 'platforms/slack/a.ts', `import { run } from '../../agent/run.ts';`],
    ['a platform that knows the list of platforms', 'platforms/slack/a.ts', `import { a } from '../registry.ts';`],
    ['a platform that knows the lifecycle', 'platforms/slack/a.ts', `import { a } from '../../lifecycle/states.ts';`],
    ['a configuration that knows the inside', 'config/a.ts', `import { a } from '../platforms/slack/platform.ts';`],
    ['a store file that knows its feature', 'cron/a-store.ts', `import { next } from './schedule.ts';`],
    ['a store file that knows the gateway', 'cron/a-store.ts', `import { run } from '../gateway/run.ts';`],
    ['a call of the command line', 'gateway/a.ts', `import { main } from '../cli/main.ts';`],
    ['a file outside src', 'store/a.ts', `import { startPostgres } from '../../test/support/postgres.ts';`],
    ['a layer that is not in the table', 'utils/a.ts', `export const a = 1;`],
    ['a file in no layer', 'main.ts', `export const a = 1;`],
    ['a file that imports itself', 'store/a.ts', `import { a } from './a.ts';`],
  ])('%s', (_, path, text) => {
    expect(findViolations(new Map([[path, text]]), table)).toHaveLength(1);
  });

  test('a cycle of files, but none of types alone', () => {
    const a = `import { b } from './b.ts';`;
    const cycleOf = (text: string) =>
      findViolations(new Map([...[['store/a.ts', a] as const], ['store/b.ts', text]]), table);
    expect(cycleOf(`export { a } from './a.ts';`)).toEqual(['cycle: store/a.ts > store/b.ts > store/a.ts']);
    expect(cycleOf(`import type { A } from './a.ts';`)).toEqual([]);
    expect(cycleOf(`new URL('./a.ts', import.meta.url);`)).toEqual([]);
  });

  test.each([
    ['store/a.ts', `import { DatabaseSync } from 'node:sqlite';\nimport pg from 'pg';`],
    ['cron/a-store.ts', `import { Table } from '../store/table.ts';`],
    ['store/catalogue.ts', `import * as jobs from '../cron/job-store.ts';`],
    ['lifecycle/a.ts', `import { Temporal } from 'temporal-polyfill';\nimport { MoiraiError } from '../errors/a.ts';`],
    [
      'lifecycle/a.ts',
      `// import { open } from '../store/open.ts';\nconst url = 'https://x'; /* import '../store/a.ts' */`,
    ],
    ['lifecycle/a.ts', `export const text = 'words from "../store/open.ts"';`],
    ['config/a.ts', `import { platformSettings } from '../platforms/registry.ts';`],
    ['platforms/slack/a.ts', `import { fieldsOf } from '../fields.ts';`],
    ['platforms/registry.ts', `import { platformName } from '../lifecycle/session-key.ts';`],
    ['platforms/slack/a.ts', `import { parse } from './parse.ts';\nimport type { Platform } from '../platform.ts';`],
    ['cli/a.ts', `import { run } from '../gateway/run.ts';\nconst { HOME } = process.env;`],
    ['engine/a.ts', `process.exitCode = 1; const file = new URL('../../package.json', import.meta.url);`],
  ])('nothing about lawful code in %s', (path, text) => {
    expect(findViolations(new Map([[path, text]]), table)).toEqual([]);
  });
});
