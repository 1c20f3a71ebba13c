import { parseArgs } from 'node:util';
import { describeFuzz, fuzz, LIMIT_MS } from './fuzz.ts';

const { values } = parseArgs({
  options: { texts: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});

const result = fuzz(Number(values.texts), Number(values.seed), (texts) => process.stderr.write(`${texts}\n`));
process.stdout.write(`${describeFuzz(result).join('\n')}\n`);
const slow = [...result.slowest].filter(([, { ms }]) => ms > LIMIT_MS);
const [early, late] = result.memory;
const grew = late - early > 50e6;
for (const error of result.thrown.slice(0, 20)) process.stdout.write(`threw: ${error}\n`);
process.stdout.write(
  `${slow.length} parsers over ${LIMIT_MS} ms, ${result.thrown.length} errors, memory ${grew ? 'grew' : 'flat'}\n`,
);
process.exitCode = slow.length > 0 || result.thrown.length > 0 || grew ? 1 : 0;
