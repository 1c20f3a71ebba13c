import type { Command } from 'commander';
import { SCHEMA_VERSION } from '../../store/migrations/migrations.ts';
import { type Answer, answer } from '../command.ts';
import { packageVersion } from '../package-version.ts';

export function define(command: Command): void {
  command
    .description('Shows the versions of Moirai, of Node.js, of SQLite, and of the store’s schema.')
    .action(answer(versions));
}

async function versions(): Promise<Answer> {
  const { node, sqlite = null } = process.versions;
  const json = { version: packageVersion(), node, sqlite, schema: SCHEMA_VERSION };
  return { json, text: `moirai ${json.version} (Node.js ${node}, SQLite ${sqlite}, schema ${json.schema})` };
}
