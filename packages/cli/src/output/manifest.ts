import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { oneLine } from '../escape.ts';

/** The manifest of a view as text: policy, ranges in and out, size and digests. */
export function manifestLines(of: string, manifest: object): readonly string[] {
  const fields = manifest as Record<string, Json>;
  const { policy, version, target, head, tokens, pruned, digest, instructions_digest, tools_digest } = fields;
  const { same, fault } = fields;
  const forTarget = target === undefined ? '' : ` for ${shown(target)}`;
  return [
    `${of}: ${shown(policy)}, version ${shown(version)}${forTarget}, at @${shown(head)}, ~${shown(tokens)} tokens`,
    `  in: ${rangesText(fields.in) || 'nothing'}`,
    ...(Array.isArray(fields.out) ? fields.out : []).map((range) => `  out: ${rangesText([range])}`),
    ...(pruned === undefined ? [] : [`  pruned outputs: ${shown(pruned)}`]),
    `  digests: messages ${shown(digest)}${digestText('instructions', instructions_digest)}${digestText('tools', tools_digest)}`,
    ...(same === undefined ? [] : [same === true ? '  reproduced: identical' : '  reproduced: different']),
    ...(isObject(fault) ? [`  reason: ${shown(fault.message)}`] : []),
  ];
}

function digestText(what: string, digest: Json | undefined): string {
  return digest === undefined ? '' : `, ${what} ${shown(digest)}`;
}

function rangesText(ranges: Json | undefined): string {
  if (!Array.isArray(ranges)) return '';
  return ranges
    .map((range) => {
      const [from, to, why] = Array.isArray(range) ? range : [];
      return `@${shown(from)}${from === to ? '' : `-${shown(to)}`}${why === undefined ? '' : ` ${shown(why)}`}`;
    })
    .join(', ');
}

const shownMax = 400;

/** A value of a manifest on one line. A manifest comes from the tape, so the value may be any JSON. */
function shown(value: Json | undefined): string {
  return oneLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'unknown'), shownMax);
}
