/** How many texts share a page: what changes costs a page, not the sheet. */
const PAGE = 128;

interface Page {
  readonly texts: Map<string, string>;
  /** What it is on the wire; null when it has changed since. */
  bytes: Buffer | null;
}

/** Many small texts by name, and all of them together, separated by commas, as bytes. */
export class ActivitySnapshot {
  readonly #pages: Page[] = [];
  readonly #places = new Map<string, Page>();
  /** Pages that have room, the fullest use first come first served. */
  readonly #roomy: Page[] = [];

  put(name: string, text: string): void {
    const page = this.#places.get(name) ?? this.#room();
    page.texts.set(name, text);
    page.bytes = null;
    this.#places.set(name, page);
  }

  remove(name: string): void {
    const page = this.#places.get(name);
    if (page === undefined) return;
    if (page.texts.size === PAGE) this.#roomy.push(page);
    page.texts.delete(name);
    page.bytes = null;
    this.#places.delete(name);
  }

  render(): Buffer[] {
    return this.#pages
      .filter(({ texts }) => texts.size > 0)
      .flatMap((page, i) => (i === 0 ? [bytesOf(page)] : [COMMA, bytesOf(page)]));
  }

  #room(): Page {
    const last = this.#roomy.at(-1);
    if (last !== undefined && last.texts.size < PAGE - 1) return last;
    if (last !== undefined) return this.#roomy.pop()!;
    const page: Page = { texts: new Map(), bytes: null };
    this.#pages.push(page);
    this.#roomy.push(page);
    return page;
  }
}

const COMMA = Buffer.from(',');

function bytesOf(page: Page): Buffer {
  page.bytes ??= Buffer.from([...page.texts.values()].join(','));
  return page.bytes;
}
