import { parseArgs } from 'node:util';
import { killAgainAndAgain } from './killing.ts';

const USAGE = 'npm run torture:gateway -- [--kills 100]';
const { values } = parseArgs({
  options: { kills: { type: 'string', default: '100' }, help: { type: 'boolean', default: false } },
});

if (values.help) console.log(USAGE);
else {
  const report = await killAgainAndAgain(Number(values.kills), Math.random, (line) => console.log(`  ${line}`));
  console.log(`${report.kills} kills, ${report.messages} messages, ${report.resent} sent again`);
  for (const violation of report.violations) console.log(violation);
  console.log(report.violations.length === 0 ? 'every message was answered once, in order' : 'a promise was broken');
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
