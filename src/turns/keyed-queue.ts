/** Does things of one key one after the other, in the order in which they were asked for; other keys do not wait. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, action: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const done = before === undefined ? action() : before.then(action, action);
    this.#last.set(key, done);
    const forget = (): void => {
      if (this.#last.get(key) === done) this.#last.delete(key);
    };
    done.then(forget, forget);
    return done;
  }
}
