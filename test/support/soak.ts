/** Whether the large sizes are asked for: `TAPEDECK_SOAK=1`. */
export const soak: boolean = process.env.TAPEDECK_SOAK === '1';

/** The size of a test: one for every push, and a large one. */
export function sized(push: number, large: number): number {
  return soak ? large : push;
}
