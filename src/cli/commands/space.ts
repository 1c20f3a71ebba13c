import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { SpaceGateway } from '../../space/gateway-link.ts';
import { builtPage } from '../../space/page-files.ts';
import { startSpace } from '../../space/space-server.ts';
import { operatorKey, readConfig } from '../configuration.ts';
import { findGateway } from '../gateway/holder.ts';
import { whole } from '../options.ts';
import { packageVersion } from '../package-version.ts';
import { facts, print, printLine } from '../print.ts';
import { warn } from '../report-error.ts';
import { type Settings, settingsOf } from '../settings.ts';
import { stopSignal } from '../stop-signal.ts';

interface SpaceCommandOptions {
  readonly gateway?: readonly string[];
  readonly host: string;
  readonly port: string;
  readonly key?: string;
}

export function define(command: Command): void {
  command
    .description('Serves one page over several gateways, until interrupted. None of them needs to run yet.')
    .option('--gateway <gateway>', 'a gateway: [NAME=]URL[,KEY]; may be repeated (default: that of the home)', add)
    .option('--host <host>', 'address to listen on; others than loopback need --key', '127.0.0.1')
    .option('--port <port>', 'port to listen on, 0 for any free one', '8788')
    .option('--key <key>', 'what the page asks people for (default: nothing, and only this machine is let in)')
    .addHelpText('after', KEYS)
    .action((options: SpaceCommandOptions) => space(settingsOf(command), options));
}

const KEYS = `
A KEY is env:NAME (an environment variable), file:PATH (the text of a file), or the key itself. Other users of this machine
can see what stands on a command line, so prefer the first two.

Examples:
  moirai space --gateway http://127.0.0.1:8787 --gateway north=https://north.example,env:NORTH_KEY
  moirai space --gateway https://north.example,file:north.key --host 0.0.0.0 --key env:SPACE_KEY`;

function add(word: string, before: readonly string[] = []): readonly string[] {
  return [...before, word];
}

async function space(settings: Settings, options: SpaceCommandOptions): Promise<void> {
  const gateways = options.gateway?.map(readGateway) ?? [await ownGateway(settings)];
  const tell = (_: string, fields: Readonly<Record<string, unknown>> = {}): void => warn(fields.error);
  const opened = await startSpace({
    host: options.host,
    port: whole('--port', 0, 65_535)(options.port),
    key: options.key === undefined ? null : readKey(options.key, '--key'),
    gateways,
    page: builtPage(),
    version: packageVersion(),
    log: { error: tell, warn: tell },
  });
  const stopped = once(stopSignal(), 'abort');
  const { url } = opened;
  if (settings.json) await printLine(JSON.stringify({ url }));
  else await print(facts({ url, gateways: gateways.map(({ name }) => name).join(', ') }));
  await stopped;
  await opened.close();
}

/** Reads `[NAME=]URL[,KEY]`. Errors do not repeat its words: a key may be among them. */
function readGateway(word: string, index: number): SpaceGateway {
  const option = `--gateway ${index + 1}`;
  const [, name, address = '', , key] = /^(?:([^=:/,]+)=)?([^,]*)(,(.*))?$/s.exec(word) ?? [];
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new MoiraiError('bad_input', `${option} is no address that begins with http:// or https://`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new MoiraiError('bad_input', `${option} has more than a host and a path; a key stands behind a comma`);
  }
  return {
    name: name ?? `${url.host}${url.pathname.replace(/\/$/, '')}`,
    url: url.href,
    key: key === undefined ? null : readKey(key, option),
  };
}

function readKey(word: string, option: string): string {
  const [, kind, rest = ''] = /^(env|file):(.*)$/s.exec(word) ?? [];
  const key = (kind === 'env' ? process.env[rest] : kind === 'file' ? readKeyFile(rest, option) : word)?.trim();
  if (kind === 'env' && !key) throw new MoiraiError('bad_input', `${option}: the variable ${rest} is not set`);
  if (!key) throw new MoiraiError('bad_input', `${option}: the key is empty`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what no header can carry.
  if (/[\0-\x1f\x7f]/.test(key)) throw new MoiraiError('bad_input', `${option}: the key has more than one line`);
  return key;
}

function readKeyFile(path: string, option: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const { message } = MoiraiError.wrap(cause);
    throw new MoiraiError('bad_input', `${option}: the key cannot be read: ${message}`, { cause });
  }
}

/** The gateway of the home, where it runs or where it would. */
async function ownGateway(settings: Settings): Promise<SpaceGateway> {
  const { gateway } = await readConfig(settings);
  const { host, port, name } = gateway;
  const running = findGateway(settings.home)?.url ?? null;
  if (running === null && port === 0) {
    throw new MoiraiError('gateway_not_running', `no gateway runs in ${settings.home}, and it has no port of its own`);
  }
  const url = running ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { name: name ?? hostname(), url, key: operatorKey(gateway) };
}
