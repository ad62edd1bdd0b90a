import type { Json } from '@tapedeck/tape';

/** What a view was made of, for people: its rules, the ranges that are in and out of it, its size and its digests. */
export function manifestLines(of: string, manifest: object): readonly string[] {
  const told = manifest as Record<string, Json>;
  const { policy, version, target, head, tokens, pruned, digest, instructions_digest, tools_digest, same } =
    told;
  const forWhom = target === undefined ? '' : ` for ${String(target)}`;
  return [
    `${of}: ${String(policy)}, version ${String(version)}${forWhom}, of @${String(head)}, ~${String(tokens)} tokens`,
    `  in: ${rangesText(told.in) || 'nothing'}`,
    ...(Array.isArray(told.out) ? told.out : []).map((range) => `  out: ${rangesText([range])}`),
    ...(pruned === undefined ? [] : [`  outputs left out: ${String(pruned)}`]),
    `  digests: messages ${String(digest)}${digestText('instructions', instructions_digest)}${digestText('tools', tools_digest)}`,
    ...(same === undefined
      ? []
      : [same === true ? '  made again, it is the same' : '  made again, it is another']),
  ];
}

function digestText(what: string, digest: Json | undefined): string {
  return digest === undefined ? '' : `, ${what} ${String(digest)}`;
}

function rangesText(ranges: Json | undefined): string {
  if (!Array.isArray(ranges)) return '';
  return ranges
    .map((range) => {
      const [from, to, why] = Array.isArray(range) ? range : [];
      return `@${String(from)}${from === to ? '' : `-${String(to)}`}${why === undefined ? '' : ` ${String(why)}`}`;
    })
    .join(', ');
}
