/** What a supervisor has to know to run the gateway of a home. */
export interface ServiceFacts {
  /** The program and its arguments, absolute. */
  readonly command: readonly string[];
  readonly home: string;
  readonly log: string;
  /** How long stopping may take. */
  readonly stopSeconds: number;
  readonly name: string;
}

/** Tells our files from others: nothing else is overwritten or removed. */
export const MARK = 'Written by `moirai gateway install`';
