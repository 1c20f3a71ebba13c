import { readFileSync } from 'node:fs';

export interface Sample {
  readonly title: string;
  readonly update: Record<string, unknown>;
  /** Fields of what it becomes; null when it is skipped. */
  readonly becomes: Record<string, unknown> | null;
}

/** The samples beside the parser. */
export function readSamples(): Sample[] {
  const file = new URL('../../src/platforms/telegram/sample-messages.md', import.meta.url);
  const sections = readFileSync(file, 'utf8').split(/^## /m).slice(1);
  return sections.map((section) => {
    const [update = '', becomes = ''] = [...section.matchAll(/```json\n(.*?)\n```/gs)].map(([, json]) => json);
    const title = section.slice(0, section.indexOf('\n'));
    return { title, update: JSON.parse(update), becomes: JSON.parse(becomes) } as Sample;
  });
}
