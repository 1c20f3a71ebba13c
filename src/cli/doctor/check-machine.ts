import { accessSync, constants, statSync } from 'node:fs';
import type { Finding } from './finding.ts';

const NEEDED_NODE = [24, 15] as const;

/** What can be said before the store is opened. */
export function checkMachine(home: string): Finding[] {
  return [checkNode(process.versions.node), checkHome(home)];
}

function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const enough = major > NEEDED_NODE[0] || (major === NEEDED_NODE[0] && minor >= NEEDED_NODE[1]);
  const message = `Node.js ${version}`;
  if (enough) return { check: 'node', status: 'ok', message };
  return { check: 'node', status: 'fail', message: `${message}; ${NEEDED_NODE.join('.')} or newer is needed` };
}

function checkHome(home: string): Finding {
  const check = 'home';
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return { check, status: 'fail', message: `${home} is not writable`, hint: 'Give it to the user who runs Moirai.' };
  }
  const mode = statSync(home).mode & 0o777;
  const shown = `${home} (${mode.toString(8).padStart(4, '0')})`;
  if ((mode & 0o077) === 0) return { check, status: 'ok', message: shown };
  return { check, status: 'warn', message: `${shown} is open to other users`, hint: `chmod 700 ${home}` };
}
