/** What the writer lets the readers of the same file know, in whichever threads they are. */
export class FileSignal {
  readonly cells: Int32Array<SharedArrayBuffer>;

  constructor(cells = new Int32Array(new SharedArrayBuffer(8))) {
    this.cells = cells;
  }

  /** Grows each time the file was opened anew: older connections may not see what is written from then on. */
  get openings(): number {
    return Atomics.load(this.cells, 0);
  }

  opened(): void {
    Atomics.add(this.cells, 0, 1);
  }

  /** The file at the path is not the one that was opened. */
  get replaced(): boolean {
    return Atomics.load(this.cells, 1) === 1;
  }

  set replaced(replaced: boolean) {
    Atomics.store(this.cells, 1, replaced ? 1 : 0);
  }
}
