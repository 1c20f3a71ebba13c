/** Reads Telegram's MarkdownV2 as strictly as Telegram: returns what people see, or what cannot be read. */
export function readMarkdownV2(written: string): string | { readonly problem: string } {
  let text = '';
  const token =
    /\\([\s\S])|```(?:\w*\n)?([\s\S]*?)```|`([^`]*)`|\]\([^)]*\)|\*|__|_|~|\|\||\[|([>#+\-=|{}.!()\]])|([\s\S])/g;
  for (const [, escaped, block, code, reserved, plain] of written.matchAll(token)) {
    if (reserved !== undefined) return { problem: `Character '${reserved}' is reserved and must be escaped` };
    text += escaped ?? block?.replace(/\\([\s\S])/g, '$1') ?? code?.replace(/\\([\s\S])/g, '$1') ?? plain ?? '';
  }
  return text;
}
