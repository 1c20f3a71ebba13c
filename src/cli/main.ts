import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Most of a short command's time goes into compiling its own code, so the compiled code is kept beside the packages: as
// trustworthy as they are, and where that is not writable it is simply not kept.
const packages = fileURLToPath(new URL('../../node_modules', import.meta.url));
if (existsSync(packages)) enableCompileCache(`${packages}/.cache/moirai`);

const { runCommandLine } = await import('./program.ts');
await runCommandLine(process.argv.slice(2));
