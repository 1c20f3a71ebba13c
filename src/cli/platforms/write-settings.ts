import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isMap, parseDocument } from 'yaml';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** Sets values in a YAML file and leaves all else as it is, comments too. */
export function writeYaml(file: string, values: readonly (readonly [path: readonly string[], value: unknown])[]): void {
  const document = parseDocument(existsSync(file) ? readFileSync(file, 'utf8') : '');
  const [error] = document.errors;
  if (error !== undefined) throw new MoiraiError('config_unreadable', `${file}: ${error.message.split('\n')[0]}`);
  for (const [path, value] of values) {
    // A section whose every line is a comment is no map yet.
    for (let depth = 1; depth < path.length; depth++) {
      const above = path.slice(0, depth);
      if (!isMap(document.getIn(above))) document.setIn(above, document.createNode({}));
    }
    document.setIn(path, value);
  }
  replace(file, document.toString());
}

/** Sets variables in a `.env` file; other lines stay as they are. */
export function writeDotEnv(file: string, values: ReadonlyMap<string, string>): void {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  if (lines.at(-1) === '') lines.pop();
  for (const [name, value] of values) {
    const line = `${name}=${quoted(value)}`;
    const at = lines.findIndex((each) => VARIABLE.exec(each.trim())?.[1] === name);
    if (at < 0) lines.push(line);
    else lines[at] = line;
  }
  replace(file, `${lines.join('\n')}\n`);
}

const VARIABLE = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=/;

function quoted(value: string): string {
  if (/^[\w./:@+-]+$/.test(value)) return value;
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `"${escaped}"`;
}

/** All of it or nothing, and for nobody else's eyes. */
function replace(file: string, text: string): void {
  const unfinished = `${file}.${process.pid}.part`;
  writeFileSync(unfinished, text, { mode: 0o600 });
  renameSync(unfinished, file);
}
