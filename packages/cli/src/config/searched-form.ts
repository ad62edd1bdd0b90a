import { isMap, isNode, isScalar, isSeq } from 'yaml';

/** A mistake in what a configuration says of imports, and where it stands. */
interface SearchedFault {
  readonly why: string;
  readonly offset: number;
  readonly field: string;
}

/**
 * What is wrong with the form of `import` in a parsed file; undefined for one that imports can read. Pure.
 * @param offset where the field stands
 */
export function searchedFault(value: unknown, offset: number): SearchedFault | undefined {
  if (!isMap(value))
    return { why: 'import must be a mapping with roots and exclude', offset, field: 'import' };
  for (const { key, value: list } of value.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const field = `import.${name}`;
    const at = { offset: offsetOf(key) ?? offset, field };
    if (name !== 'roots' && name !== 'exclude')
      return { ...at, why: `no such field '${field}' (the fields are roots, exclude)` };
    if (!isSeq(list)) return { ...at, why: `${field} must be a list of texts` };
    for (const item of list.items) {
      const text = isScalar(item) ? item.value : undefined;
      const here = { ...at, offset: offsetOf(item) ?? at.offset };
      if (typeof text !== 'string') return { ...here, why: `${field} must be a list of texts` };
      // It would be the home itself.
      if (name === 'roots' && text === '')
        return { ...here, why: `${field} has an empty text, which names no directory` };
    }
  }
  return undefined;
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
