/** What we use of the package, which has no types of its own. */
declare module 'html-to-text' {
  interface Selector {
    readonly selector: string;
    readonly format?: string;
    readonly options?: Readonly<Record<string, unknown>>;
  }

  interface Options {
    readonly wordwrap?: number | false;
    readonly selectors?: readonly Selector[];
    readonly limits?: {
      readonly maxInputLength?: number;
      readonly maxDepth?: number;
      readonly maxChildNodes?: number;
      readonly maxBaseElements?: number;
      readonly ellipsis?: string;
    };
  }

  export function compile(options: Options): (html: string) => string;
}
