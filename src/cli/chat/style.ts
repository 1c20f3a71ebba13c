/** Colours, where they are wanted. */
export interface Style {
  dim(text: string): string;
  alarm(text: string): string;
}

export function styleFor(terminal: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  const coloured = terminal && !env.NO_COLOR && env.TERM !== 'dumb';
  const paint =
    (code: number) =>
    (text: string): string =>
      coloured ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { dim: paint(2), alarm: paint(31) };
}
