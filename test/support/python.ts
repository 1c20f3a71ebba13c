import { execFileSync } from 'node:child_process';

/** Whether this machine can run hooks in Python; the rest of the tests needs nothing but Node. */
export function hasPython(): boolean {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
