import { spawn } from 'node:child_process';
import type { Config } from '../../config/config.ts';
import type { Settings } from '../settings.ts';
import { stopGateway } from './control.ts';
import { findGateway } from './holder.ts';

/** What `gateway run` may be told beside the configuration. */
export interface RunOptions {
  readonly port?: number;
  /** Stop the gateway that runs in the home. */
  readonly replace?: boolean;
  /** Show the page in a browser. */
  readonly open?: boolean;
}

/** Makes room for this gateway. What the other one had not finished goes on in this one. */
export async function replaceRunning(settings: Settings): Promise<void> {
  const holder = findGateway(settings.home);
  if (holder !== null) await stopGateway(holder, settings, { signal: 'SIGTERM', now: false });
}

/** The configuration with the port of the command line; one that chose any free port before stays on that. */
export function onPort(config: Config, { port = config.gateway.port }: RunOptions, before: number | null): Config {
  return { ...config, gateway: { ...config.gateway, port: port === 0 && before !== null ? before : port } };
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/** Shows a page in the browser of this machine. Where there is none, `failed` is told. */
export function openPage(url: string, failed: (error: Error) => void): void {
  const [program = 'xdg-open', ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.once('error', failed);
  child.unref();
}
