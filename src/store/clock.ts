/** The two clocks a store runs on. Tests inject their own and run a whole life in a millisecond. */
export interface StoreClock {
  /** Wall clock, epoch milliseconds: what people see and what deadlines mean. */
  now(): number;
  /** Lease clock, milliseconds: shared by all processes of the store, never set back. */
  lease(): number;
}

/**
 * For processes of one machine. Leases run on the monotonic clock since boot, which all of them share: neither a
 * corrected wall clock nor a sleeping laptop kills a living process.
 */
export const machineClock: StoreClock = {
  now: () => Date.now(),
  lease: () => Number(process.hrtime.bigint() / 1_000_000n),
};
