/** Whether the large sizes run: `TAPEDECK_SOAK=1`. */
export const soak: boolean = process.env.TAPEDECK_SOAK === '1';

/** The size of a test: the first in the test command, the second in a soak. */
export function sized(push: number, large: number): number {
  return soak ? large : push;
}
