/** Milliseconds of the fastest of several batches of some work: a machine that is busy for a moment makes none faster. */
export function fastest(batches: number, work: (batch: number) => void): number {
  const took = Array.from({ length: batches }, (_, batch) => {
    const began = performance.now();
    work(batch);
    return performance.now() - began;
  });
  return Math.min(...took);
}
