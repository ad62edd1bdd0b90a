/** What an act took, in microseconds: by the clock, and of the processor. */
export interface Took {
  readonly clock: number;
  readonly cpu: number;
}

export async function tookBy(act: () => unknown): Promise<Took> {
  const before = process.cpuUsage();
  const start = performance.now();
  await act();
  const clock = (performance.now() - start) * 1000;
  const { user, system } = process.cpuUsage(before);
  return { clock, cpu: user + system };
}

export async function cpuOf(act: () => unknown): Promise<number> {
  return (await tookBy(act)).cpu;
}
