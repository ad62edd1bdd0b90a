import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { isObject, isoTime, recordedUsage, type Usage } from '@tapedeck/tape/internal';
import { code, codeOf } from './markdown.ts';

/** What is recorded about an entry beside its content, as the items of a list. Pure. */
export function factsOf(entry: Entry, before: Pick<Entry, 'seq' | 'at'> | undefined): readonly string[] {
  const { at, sourceAt, key, hash, meta } = entry;
  const { run, step, provider, model, response, finish, usage: _, cost, view, tools, ...rest } = meta;
  const counts = recordedUsage(meta);
  return [
    `time: ${isoTime(at)}${since(at, before)}`,
    ...(sourceAt === undefined ? [] : [`time at the source: ${isoTime(sourceAt)}`]),
    ...answered({ run, step, provider, model, response, finish }),
    ...(counts === undefined
      ? []
      : [`usage: ${usageText(counts)}${cost === undefined ? '' : `, cost ${plain(cost)}`}`]),
    ...(isObject(view) ? [`view: ${manifestText(view)}`] : []),
    ...(Array.isArray(tools) ? [`tools: ${tools.map(toolName).map(code).join(', ')}`] : []),
    ...(Object.keys(rest).length === 0 ? [] : [`meta: ${codeOf(rest)}`]),
    ...(key === undefined ? [] : [`key: ${code(key)}`]),
    `hash: ${code(hash)}`,
  ].map((fact) => `* ${fact}`);
}

/** The name of a tool that the model was sent. */
function toolName(tool: Json): string {
  return isObject(tool) && typeof tool.name === 'string' ? tool.name : '?';
}

/** How long after the entry before it an entry was recorded. */
function since(at: number, before: Pick<Entry, 'seq' | 'at'> | undefined): string {
  if (before === undefined) return '';
  return `, ${((at - before.at) / 1000).toFixed(3)} s after @${before.seq}`;
}

/** The run, its step, the model and how it ended: what a model's message records. */
function answered(facts: Readonly<Record<string, Json | undefined>>): readonly string[] {
  const named = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${plain(value)}`],
  );
  return named.length === 0 ? [] : [named.join(', ')];
}

function usageText({ input, output, reasoning, cacheRead, cacheWrite }: Usage): string {
  return `${input} in, ${output} out, ${reasoning} reasoning, ${cacheRead} read from a cache, ${cacheWrite} written to one`;
}

/** The manifest of the view that a model answered. A manifest comes from the tape, so its values may be any JSON. */
function manifestText({
  policy,
  version,
  target,
  head,
  tokens,
  pruned,
  digest,
  ...rest
}: JsonObject): string {
  const { in: shown, out, ...others } = rest;
  return [
    plain(policy),
    `version ${plain(version)}`,
    ...(target === undefined ? [] : [`for ${plain(target)}`]),
    `at @${plain(head)}`,
    `about ${plain(tokens)} tokens`,
    `in ${codeOf(shown ?? null)}`,
    `out ${codeOf(out ?? null)}`,
    ...(pruned === undefined ? [] : [`pruned outputs ${plain(pruned)}`]),
    `digest ${plain(digest)}`,
    ...(Object.keys(others).length === 0 ? [] : [codeOf(others)]),
  ].join(', ');
}

/** A value of a tape on one line. A number needs no marks. */
function plain(value: Json | undefined): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? code(value) : codeOf(value ?? null);
}
