import type { Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** What a tool returned as one text, for forms that have no other. */
export function outputText({ output }: Part): string {
  if (!isObject(output)) return plain(output);
  const { type, value, reason } = output;
  if (type === 'execution-denied') return typeof reason === 'string' ? reason : 'The call was denied.';
  if (type !== 'content' || !Array.isArray(value)) return plain(value);
  return value
    .map((part: unknown) =>
      isObject(part) ? (part.type === 'text' ? plain(part.text) : fileText(part)) : plain(part),
    )
    .join('\n');
}

/** Whether a tool failed, or was denied. */
export function isFailed({ output }: Part): boolean {
  return isObject(output) && /^error|^execution-denied$/.test(String(output.type));
}

/** What stands for a file in a form that cannot have it. */
export function fileText({ mediaType, filename, type }: { readonly [field: string]: unknown }): string {
  return `[${[filename, mediaType, ...(mediaType === undefined ? [type] : [])].filter((fact) => typeof fact === 'string').join(', ')}]`;
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
