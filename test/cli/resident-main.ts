import { runCommandLine } from '../../src/cli/program.ts';

/** A command line to run in this process, and the home it is for. */
export interface Request {
  readonly args: readonly string[];
  readonly home: string;
}

export interface Reply {
  readonly code: number;
  readonly output: string;
}

let output = '';
process.stdout.write = (text: string | Uint8Array): boolean => {
  output += text;
  return true;
};

process.on('disconnect', () => process.exit());
process.on('message', async ({ args, home }: Request) => {
  output = '';
  process.exitCode = 0;
  process.env.MOIRAI_HOME = home;
  await runCommandLine(args);
  process.removeAllListeners('uncaughtException');
  process.send?.({ code: Number(process.exitCode), output } satisfies Reply);
});
