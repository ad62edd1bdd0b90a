import { isObject, type Json } from '@tapedeck/tape';
import { oneLine } from '../escape.ts';

/** What a view was made of, for people: its rules, the ranges that are in and out of it, its size and its digests. */
export function manifestLines(of: string, manifest: object): readonly string[] {
  const told = manifest as Record<string, Json>;
  const { policy, version, target, head, tokens, pruned, digest, instructions_digest, tools_digest } = told;
  const { same, fault } = told;
  const forWhom = target === undefined ? '' : ` for ${said(target)}`;
  return [
    `${of}: ${said(policy)}, version ${said(version)}${forWhom}, of @${said(head)}, ~${said(tokens)} tokens`,
    `  in: ${rangesText(told.in) || 'nothing'}`,
    ...(Array.isArray(told.out) ? told.out : []).map((range) => `  out: ${rangesText([range])}`),
    ...(pruned === undefined ? [] : [`  outputs left out: ${said(pruned)}`]),
    `  digests: messages ${said(digest)}${digestText('instructions', instructions_digest)}${digestText('tools', tools_digest)}`,
    ...(same === undefined
      ? []
      : [same === true ? '  made again, it is the same' : '  made again, it is another']),
    ...(isObject(fault) ? [`  why: ${said(fault.message)}`] : []),
  ];
}

function digestText(what: string, digest: Json | undefined): string {
  return digest === undefined ? '' : `, ${what} ${said(digest)}`;
}

function rangesText(ranges: Json | undefined): string {
  if (!Array.isArray(ranges)) return '';
  return ranges
    .map((range) => {
      const [from, to, why] = Array.isArray(range) ? range : [];
      return `@${said(from)}${from === to ? '' : `-${said(to)}`}${why === undefined ? '' : ` ${said(why)}`}`;
    })
    .join(', ');
}

const saidMax = 400;

/** A value of a manifest, which may be of any form: it is what the tape has. None of it begins a line of its own. */
function said(value: Json | undefined): string {
  return oneLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? 'unknown'), saidMax);
}
