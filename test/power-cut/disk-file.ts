import { between, type Random } from './random.ts';

/** What a disk writes whole or not at all. */
const SECTOR = 512;

type Change = { index: number } & (
  | { kind: 'write'; offset: number; data: Buffer }
  | { kind: 'truncate'; size: number }
);

/** Bytes that grow. Everything beyond `size` is zero, so that a file which is extended reads zeros there. */
class Contents {
  private bytes = Buffer.alloc(0);
  size = 0;

  resize(size: number): void {
    if (size > this.bytes.length) {
      const grown = Buffer.alloc(Math.max(size, this.bytes.length * 2));
      this.bytes.copy(grown, 0, 0, this.size);
      this.bytes = grown;
    } else if (size < this.size) {
      this.bytes.fill(0, size, this.size);
    }
    this.size = size;
  }

  write(offset: number, data: Buffer): void {
    if (offset + data.length > this.size) this.resize(offset + data.length);
    data.copy(this.bytes, offset);
  }

  apply(change: Change): void {
    if (change.kind === 'write') this.write(change.offset, change.data);
    else this.resize(change.size);
  }

  /** A view, valid until the next change. */
  slice(from = 0, to = this.size): Buffer {
    return this.bytes.subarray(from, to);
  }

  copy(): Contents {
    const copy = new Contents();
    copy.write(0, this.slice());
    return copy;
  }
}

/** One file of a simulated disk: what it reads now, what the disk is sworn to hold, and the changes between the two. */
export class DiskFile {
  private readonly current = new Contents();
  private readonly durable = new Contents();
  private pending: Change[] = [];

  change(change: Change): void {
    this.current.apply(change);
    this.pending.push(change);
  }

  /**
   * A sync that began at operation `start` has returned. Lengths become durable with the data, for fdatasync too:
   * without the length the data could not be read back, and Linux writes a shrunk length as it does a grown one.
   */
  synced(start: number): void {
    const covered = this.pending.filter((change) => change.index < start);
    for (const change of covered) this.durable.apply(change);
    this.pending = this.pending.slice(covered.length);
  }

  /** Every change survived. A view, valid until the next change. */
  kept(): Buffer {
    return this.current.slice();
  }

  /** No change survived unless a sync covered it. A view, valid until the next change. */
  lost(): Buffer {
    return this.durable.slice();
  }

  /**
   * Some changes survived. Each sector an uncovered write touched holds what was durable or what any of those writes
   * left in it. Length is metadata, which file systems journal in order: the changes of length survive up to a point
   * drawn from `random`; data beyond a lost length is lost with it, and a length that survived without its data reads
   * zeros.
   */
  partlyKept(random: Random): Buffer {
    const image = this.durable.copy();
    const latest = this.durable.copy();
    const lengthsKept = between(random, 0, this.pending.length);
    // Drawn per image, and mostly high: one sector missing from a long run tempts a store more than an empty disk does.
    const chance = 1 - random() ** 3;
    // What was written where a lost truncation had cut went to new blocks that nothing points to.
    let reachable = Number.POSITIVE_INFINITY;
    for (const [position, change] of this.pending.entries()) {
      latest.apply(change);
      const lengthKept = position < lengthsKept;
      if (change.kind === 'truncate') {
        if (lengthKept) image.resize(change.size);
        else reachable = Math.min(reachable, change.size);
        continue;
      }
      const end = change.offset + change.data.length;
      if (lengthKept && end > image.size) image.resize(end);
      for (let sector = change.offset - (change.offset % SECTOR); sector < end; sector += SECTOR) {
        const sectorEnd = Math.min(sector + SECTOR, latest.size, image.size, reachable);
        if (random() < chance && sectorEnd > sector) image.write(sector, latest.slice(sector, sectorEnd));
      }
    }
    return image.slice();
  }
}
