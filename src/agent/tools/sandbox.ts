import { execFile } from 'node:child_process';
import { lstatSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import type { AgentConfig } from '../../config/config.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';

export type SandboxSettings = Pick<AgentConfig, 'sandbox' | 'sandboxNetwork'>;

const PROGRAM = 'bwrap';
const PROBE_MS = 10_000;

/** Links to below /usr on most systems, folders of their own on others. */
const SYSTEM = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** What programs look up and nobody keeps secret. The rest of /etc is not there. */
const LOOKED_UP = [
  ...['ld.so.cache', 'alternatives', 'passwd', 'group', 'nsswitch.conf', 'localtime', 'hosts', 'protocols', 'services'],
  ...['ssl', 'ca-certificates', 'pki'],
];
const FOR_NETWORK = ['resolv.conf', 'gai.conf'];

/**
 * What stands before a command to keep it in its workspace: nothing else of the machine can be written, no home and no
 * other process is there, nor a network unless it is allowed, and it dies with whatever started it. Empty for no sandbox.
 */
export function sandboxOf({ sandbox, sandboxNetwork }: SandboxSettings, root: string): readonly string[] {
  if (sandbox === 'off') return [];
  const looked = sandboxNetwork ? [...LOOKED_UP, ...FOR_NETWORK] : LOOKED_UP;
  return [
    PROGRAM,
    ...['--die-with-parent', '--unshare-all', '--new-session', '--cap-drop', 'ALL'],
    ...(sandboxNetwork ? ['--share-net'] : []),
    ...['--ro-bind', '/usr', '/usr', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...SYSTEM.flatMap(systemFolder),
    ...looked.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...[
      '--bind',
      root,
      root,
      '--remount-ro',
      '/',
      '--chdir',
      root,
      '--setenv',
      'HOME',
      root,
      '--unsetenv',
      'TMPDIR',
      '--',
    ],
  ];
}

function systemFolder(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Why commands cannot be run as the configuration wants it; null when they can. */
export async function sandboxProblem(settings: SandboxSettings): Promise<string | null> {
  const [program, ...args] = sandboxOf(settings, tmpdir());
  if (program === undefined) return null;
  try {
    await promisify(execFile)(program, [...args, '/bin/sh', '-c', ':'], { timeout: PROBE_MS });
    return null;
  } catch (thrown) {
    const { code, stderr } = thrown as { code?: string | number; stderr?: string };
    if (code === 'ENOENT') return `${PROGRAM} (bubblewrap) is not installed`;
    const [said = ''] = (stderr ?? '').trim().split('\n');
    return `${PROGRAM} does not work here: ${said === '' ? MoiraiError.wrap(thrown).message : said}`;
  }
}

/** Throws `sandbox_unavailable`: a command that is to be kept in never runs outside. A sandbox that worked is not tried again. */
export class SandboxProbe {
  readonly #settings: SandboxSettings;
  #works = false;

  constructor(settings: SandboxSettings) {
    this.#settings = settings;
  }

  async assertWorks(): Promise<void> {
    if (this.#works) return;
    const problem = await sandboxProblem(this.#settings);
    if (problem !== null) throw new MoiraiError('sandbox_unavailable', `no command is run: ${problem}`);
    this.#works = true;
  }
}
