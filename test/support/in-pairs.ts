/** Acts on all items, on two at a time: as many as the smallest machine has processors for. */
export async function inPairs<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const lane = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item);
  };
  await Promise.all([lane(), lane()]);
}
