/** Of a longer text only this much is looked at: a label may be a whole book. */
const LOOKED_AT = 512;

/** Controls, marks that turn the direction of what follows, what has no width, tags, and halves of characters. */
const HARMFUL =
  /[\p{Cc}\p{Cs}\p{Co}\p{Cn}\u00ad\u061c\u115f\u1160\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\uffff\u{e0000}-\u{e007f}]+/gu;

/** More marks on one letter than any language puts there climb over what is above. */
const PILED_MARKS = /(\p{M}{2})\p{M}+/gu;

let graphemes: Intl.Segmenter | null = null;

/** One line that is safe to measure and to draw, of at most `length` visible characters. */
export function plainText(raw: string, length: number): string {
  const text = raw.slice(0, LOOKED_AT).replace(HARMFUL, ' ').replace(PILED_MARKS, '$1').replace(/\s+/gu, ' ').trim();
  if (text.length <= length && raw.length <= LOOKED_AT) return text;
  graphemes ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  const pieces = Array.from(graphemes.segment(text), (piece) => piece.segment);
  if (pieces.length <= length && raw.length <= LOOKED_AT) return text;
  return `${pieces
    .slice(0, length - 1)
    .join('')
    .trimEnd()}…`;
}

/** A few values by their keys, each made once; when there are too many, all are made anew. */
export class Cache<V> {
  readonly #kept = new Map<string, V>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string, make: () => V): V {
    let value = this.#kept.get(key);
    if (value === undefined) {
      if (this.#kept.size >= this.#most) this.#kept.clear();
      value = make();
      this.#kept.set(key, value);
    }
    return value;
  }

  clear(): void {
    this.#kept.clear();
  }
}

/** Measuring is the dearest part of drawing a text; the same few hundred come again and again. */
const KEPT = 4000;

export class Measures {
  readonly #measure: (text: string, font: string) => number;
  readonly #fitted = new Cache<string>(KEPT);
  readonly #widths = new Cache<number>(KEPT);

  constructor(measure: (text: string, font: string) => number) {
    this.#measure = measure;
  }

  width(text: string, font: string): number {
    return this.#widths.get(`${font}\n${text}`, () => this.#measure(text, font));
  }

  /** As much of the text as there is space for; nothing when not even its first letter fits. */
  fit(text: string, font: string, space: number): string {
    const room = Math.floor(space);
    return this.#fitted.get(`${font}\n${room}\n${text}`, () => this.#cut(text, font, room));
  }

  #cut(text: string, font: string, space: number): string {
    if (this.width(text, font) <= space) return text;
    let fits = 0;
    let tooLong = text.length;
    while (tooLong - fits > 1) {
      const middle = (fits + tooLong) >> 1;
      if (this.#measure(plainText(text, middle), font) <= space) fits = middle;
      else tooLong = middle;
    }
    return fits < 2 ? '' : plainText(text, fits);
  }
}
