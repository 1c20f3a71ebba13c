import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Writes the list of platforms, one for each folder with a descriptor: a new platform is its folder and nothing else. */
const root = fileURLToPath(new URL('../src/platforms', import.meta.url));
const folders = globSync('*/descriptor.ts', { cwd: root }).map(dirname).sort();
const nameOf = (folder: string): string => folder.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
const lines = [
  '// Made by `npm run list:platforms` from the folders beside it.',
  ...folders.map((folder) => `import { descriptor as ${nameOf(folder)} } from './${folder}/descriptor.ts';`),
  '',
  '/** The platforms that this version serves. */',
  `export const SERVED = [${folders.map(nameOf).join(', ')}] as const;`,
  '',
];
const file = `${root}/served.ts`;
const text = lines.join('\n');
if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
