import { readFileSync } from 'node:fs';

export interface Sample {
  readonly title: string;
  /** As the server brings it. */
  readonly payload: Record<string, unknown>;
  /** Fields of what it becomes; null when it is skipped. */
  readonly becomes: Record<string, unknown> | null;
}

/** The samples beside the parser of a platform. */
export function readSamples(platform: string): Sample[] {
  const file = new URL(`../../src/platforms/${platform}/sample-messages.md`, import.meta.url);
  const sections = readFileSync(file, 'utf8').split(/^## /m).slice(1);
  return sections.map((section) => {
    const [payload = '', becomes = ''] = [...section.matchAll(/```json\n(.*?)\n```/gs)].map(([, json]) => json);
    const title = section.slice(0, section.indexOf('\n'));
    return { title, payload: JSON.parse(payload), becomes: JSON.parse(becomes) } as Sample;
  });
}
