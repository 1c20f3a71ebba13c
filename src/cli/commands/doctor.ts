import type { Command } from 'commander';
import { sandboxProblem } from '../../agent/tools/sandbox.ts';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { type Answer, answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { checkGateway } from '../doctor/check-gateway.ts';
import { checkHome, checkNode, checkStore, type Finding, failed } from '../doctor/checks.ts';
import { describeReaped, fix } from '../doctor/fix.ts';
import { idlePlatforms } from '../platforms/unmakeable.ts';
import { printable } from '../print.ts';
import { makeHome, type Settings } from '../settings.ts';
import { StoreSession } from '../store-session.ts';

interface Report {
  readonly findings: readonly Finding[];
  /** What was put right on the way. */
  readonly done: readonly string[];
}

export function define(command: Command): void {
  command
    .description('Checks that everything holds: the machine, the store, and the promises about every session.')
    .option('--fix', 'settle what dead processes left, and end what is overdue')
    .addHelpText('after', '\nEvery check is ok, warn or fail. The command exits with 1 when one fails.')
    .action(answer(examine));
}

async function examine(settings: Settings, { fix: withFix = false }: { fix?: boolean }): Promise<Answer> {
  makeHome(settings.home);
  const machine = [checkNode(), checkHome(settings.home)];
  const { findings: rest, done } = await examineStore(settings, withFix);
  const checks = [
    ...machine,
    ...(await checkPlatforms(settings)),
    ...(await checkSandbox(settings)),
    ...rest,
    ...(await checkGateway(settings)),
  ];
  const ok = checks.every(({ status }) => status !== 'fail');
  if (!ok) process.exitCode = 1;
  const lines = checks.flatMap(({ status, check, message, hint }) => [
    `${status.padEnd(4)}  ${printable(`${check}: ${message}`)}`,
    ...(hint === undefined ? [] : [`        ${printable(hint)}`]),
  ]);
  lines.push(...done.map((sentence) => `done  ${printable(sentence)}`), ok ? 'All is well.' : 'Something is wrong.');
  return { json: { ok, checks, done }, text: lines.join('\n') };
}

async function checkPlatforms(settings: Settings): Promise<Finding[]> {
  return (await idlePlatforms(await readConfig(settings))).map(({ name, why, hint }) => ({
    check: `platform:${name}`,
    status: 'warn',
    message: why,
    hint,
  }));
}

/** Only where one is configured. */
async function checkSandbox(settings: Settings): Promise<Finding[]> {
  const { agent } = await readConfig(settings);
  if (agent.sandbox === 'off') return [];
  const problem = await sandboxProblem(agent);
  if (problem === null) return [{ check: 'sandbox', status: 'ok', message: `${agent.sandbox} works` }];
  const { code, hint } = new MoiraiError('sandbox_unavailable', problem);
  return [{ check: 'sandbox', status: 'fail', message: `${problem}; no command is run`, hint, details: { code } }];
}

async function examineStore(settings: Settings, withFix: boolean): Promise<Report> {
  let here: StoreSession;
  try {
    here = await StoreSession.begin(settings);
  } catch (thrown) {
    if (hasCode(thrown, 'store_url', 'config_invalid', 'config_unreadable')) throw thrown;
    return { findings: [failed('store', thrown)], done: [] };
  }
  try {
    const { findings, done } = await settle(here, withFix);
    return { findings: [...(await checkStore(here.store)), ...findings], done };
  } finally {
    await here.end();
  }
}

/** Puts right what can be put right. The doctor itself is no instance to be listed, so it takes part only here. */
async function settle(here: StoreSession, withFix: boolean): Promise<Report> {
  try {
    const settled = await here.settle();
    const done = settled === null ? [] : describeReaped(settled);
    if (withFix) done.push(...(await fix(await here.engine())));
    await here.leave();
    return { findings: [], done };
  } catch (thrown) {
    return { findings: [failed('reaping', thrown)], done: [] };
  }
}
