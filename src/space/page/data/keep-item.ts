/** Keeps a text in `sessionStorage` or `localStorage`, as long as that is neither full nor forbidden; null drops it. */
export function keepItem(storage: Pick<Storage, 'setItem' | 'removeItem'>, name: string, text: string | null): void {
  try {
    if (text === null) storage.removeItem(name);
    else storage.setItem(name, text);
  } catch {
    // The page has it until it is reloaded; after that it asks the person or the gateway again.
  }
}
