import { parseArgs } from 'node:util';
import { pollThroughRestarts } from '../space/polling.ts';

const USAGE = 'npm run torture:poller -- [--seconds 300]';
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '300' }, help: { type: 'boolean', default: false } },
});

if (values.help) console.log(USAGE);
else {
  const report = await pollThroughRestarts(Number(values.seconds), Math.random, (line) => console.log(`  ${line}`));
  const { sessions, events, polls, dropped, restarts, violations } = report;
  console.log(`${sessions} sessions, ${events} events, ${polls} polls, ${dropped} dropped, ${restarts} restarts`);
  for (const violation of violations) console.log(violation);
  console.log(violations.length === 0 ? 'the log says exactly what the store says' : 'the log and the store differ');
  process.exitCode = violations.length === 0 ? 0 : 1;
}
