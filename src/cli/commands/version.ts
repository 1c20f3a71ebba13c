import type { Command } from 'commander';
import { SCHEMA_VERSION } from '../../store/migrations/migrations.ts';
import { packageVersion } from '../package-version.ts';
import { printJson, printLine } from '../print.ts';
import { settingsOf } from '../settings.ts';

export function define(command: Command): void {
  command
    .description('Shows the versions of Moirai, of Node.js, of SQLite, and of the store’s schema.')
    .action(async () => {
      const versions = {
        version: packageVersion(),
        node: process.versions.node,
        sqlite: process.versions.sqlite ?? null,
        schema: SCHEMA_VERSION,
      };
      if (settingsOf(command).json) return printJson(versions);
      const { version, node, sqlite, schema } = versions;
      return printLine(`moirai ${version} (Node.js ${node}, SQLite ${sqlite}, schema ${schema})`);
    });
}
