import type { Scalar } from 'yaml';

/**
 * The offset in a file of a place in the text of a value: a line, and a column in it. Undefined where the value is written
 * in another way than it reads, such as over several lines that are folded into one. Pure.
 */
export function offsetIn(
  file: string,
  node: Scalar,
  { line, column }: { readonly line: number; readonly column: number },
): number | undefined {
  if (typeof node.value !== 'string' || !node.range) return undefined;
  const [from, to] = node.range;
  if (node.type === 'BLOCK_LITERAL') {
    const lines = file.slice(from, to).split('\n');
    const indent = lines[1]?.search(/\S/) ?? -1;
    const before = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0);
    return indent === -1 ? undefined : from + before + indent + column - 1;
  }
  const begin = node.type === 'PLAIN' ? from : from + 1;
  return line === 1 && file.startsWith(node.value.slice(0, column - 1), begin)
    ? begin + column - 1
    : undefined;
}
