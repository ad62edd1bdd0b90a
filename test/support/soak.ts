/** Whether the large sizes were asked for: `TAPEDECK_SOAK=1`. */
export const soak: boolean = process.env.TAPEDECK_SOAK === '1';

/** A size for every push, and one for a soak. */
export function sized(push: number, large: number): number {
  return soak ? large : push;
}
