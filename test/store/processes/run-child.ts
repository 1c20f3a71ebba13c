import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A child process of the tests that speaks in lines. */
export interface Child {
  readonly process: ChildProcess;
  /** The next line it prints; rejects when it exits without one. */
  line(): Promise<string>;
  send(line: string): void;
  exited: Promise<number | null>;
}

/** Runs a script of this folder, behind a command if one is given. */
export function runChild(script: string, args: readonly string[], behind: readonly string[] = []): Child {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const command = [...behind, process.execPath, file, ...args];
  const child = spawn(command[0] ?? '', command.slice(1), { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = new Promise<number | null>((done) => child.once('close', (code) => done(code)));
  child.stdin?.on('error', () => {}); // it is gone; whoever waits for its next line is told so
  let complaints = '';
  child.stderr?.on('data', (text: Buffer) => {
    complaints += text.toString();
  });
  const waiting: { resolve(line: string): void; reject(error: Error): void }[] = [];
  const lines: string[] = [];
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    const waiter = waiting.shift();
    if (waiter === undefined) lines.push(line);
    else waiter.resolve(line);
  });
  let over = false;
  const fail = (code: number | null) => new Error(`${script} ended with ${code}: ${complaints}`);
  void exited.then((code) => {
    over = true;
    for (const waiter of waiting.splice(0)) waiter.reject(fail(code));
  });
  return {
    process: child,
    exited,
    line: () => {
      const line = lines.shift();
      if (line !== undefined) return Promise.resolve(line);
      if (over) return Promise.reject(fail(child.exitCode));
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
      });
    },
    send: (line) => {
      child.stdin?.write(`${line}\n`);
    },
  };
}
