const EXAMPLES = 5;

/** What was found wrong: every kind with how often, and a few examples. */
export class Violations {
  readonly #found = new Map<string, { count: number; examples: string[] }>();

  add(rule: string, example: string): void {
    const known = this.#found.get(rule) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES) known.examples.push(example);
    this.#found.set(rule, known);
  }

  /** Adds a violation unless the rule holds. */
  expect(holds: boolean, rule: string, example: () => string): void {
    if (!holds) this.add(rule, example());
  }

  get lines(): string[] {
    return [...this.#found].flatMap(([rule, { count, examples }]) => [
      `${rule}: ${count}`,
      ...examples.map((example) => `  ${example}`),
    ]);
  }

  get total(): number {
    return [...this.#found.values()].reduce((sum, { count }) => sum + count, 0);
  }
}
