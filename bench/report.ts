/** One measured figure beside what it is held against. */
export interface Figure {
  readonly engine: string;
  readonly what: string;
  readonly value: string;
  readonly goal: string;
  readonly met: boolean | null;
}

/** Says what goes on, and collects what was seen. */
export class Report {
  readonly figures: Figure[] = [];
  readonly #began = performance.now();

  progress(what: string): void {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(0).padStart(4);
    process.stderr.write(`${seconds} s  ${what}\n`);
  }

  /** A figure with a goal that it meets or misses; without one it is only told. */
  add(engine: string, what: string, value: string, goal = '', met: boolean | null = null): void {
    this.figures.push({ engine, what, value, goal, met });
  }

  /** The table in Markdown, ready for `docs/performance.md`. */
  table(): string {
    const head = ['engine', 'figure', 'seen', 'goal', 'met'];
    const rows = this.figures.map(({ engine, what, value, goal, met }) => {
      return [engine, what, value, goal, met === null ? '' : met ? 'yes' : 'no'];
    });
    const widths = head.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i]?.length ?? 0)));
    const line = (cells: readonly string[]): string =>
      `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
    return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
  }
}
