/** How much the tests do: for every push, for every change, or for hours. */
const sizes = ['push', 'full', 'soak'] as const;

/** The size of this run: `TAPEDECK_SIZE`, by default that of a push. */
const size = sizeOf(process.env.TAPEDECK_SIZE ?? 'push');

function sizeOf(name: string): (typeof sizes)[number] {
  const size = sizes.find((one) => one === name);
  if (size === undefined)
    throw new TypeError(`cannot run tests of the size '${name}': TAPEDECK_SIZE is push, full or soak`);
  return size;
}

/** Returns the value for the current size. */
export function sized<T>(push: T, full: T, soak: T): T {
  return { push, full, soak }[size];
}

/** Whether the run has the full size, or a larger one: `test.runIf(atFullSize)` is a test that a push leaves out. */
export const atFullSize: boolean = sized(false, true, true);
