/** A number with its noun: `1 session`, `2 entries`. */
export function counted(n: number, one: string, many: string = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
