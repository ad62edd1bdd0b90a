import { basename, dirname } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { SourceFile, SourcePlan } from '../format.ts';
import type { AgentSource } from './agents.ts';
import type { SavedOutput } from './outputs.ts';
import { agentKey, planClaudeCode } from './plan-of.ts';

/** Reads the files of one session of Claude Code as a tree of conversations. */
export async function planSource(files: readonly SourceFile[]): Promise<SourcePlan> {
  const main = files.find(({ role }) => role === 'main');
  const agents: AgentSource[] = [];
  const ids = new Map<string, string>();
  for (const file of files.filter(({ role }) => role === 'subagent')) {
    const id = agentIn(file);
    if (ids.has(id)) continue;
    ids.set(id, file.path);
    const meta = await metaOf(file, files);
    const workflow = workflowOf(file.path);
    const { records } = await file.lines();
    agents.push({
      ...{ id, lines: records },
      ...(meta !== undefined && { meta }),
      ...(workflow !== undefined && { workflow }),
    });
  }
  const beside: { key: string; value: JsonObject }[] = [];
  for (const file of files.filter(({ path }) => /^journal\.jsonl/.test(basename(path)))) {
    const { records } = await file.lines();
    const run = workflowOf(file.path) ?? '';
    beside.push(...records.map(({ value }, i) => ({ key: `cc:journal:${run}:${i + 1}`, value })));
  }
  const outputs: SavedOutput[] = [];
  for (const file of files.filter(({ path }) => basename(dirname(path)) === 'tool-results'))
    outputs.push({ name: basename(file.path), bytes: await file.bytes() });
  const { records: lines } = (await main?.lines()) ?? { records: [] };
  const plan = planClaudeCode({ name: nameOf(files), lines, agents, beside, outputs });
  const key = plan.conversations[0]?.file ?? '';
  const found = [...ids].map(([id, path]) => [path, agentKey(key, id)] as const);
  return { ...plan, files: new Map([...(main === undefined ? [] : [[main.path, key] as const]), ...found]) };
}

/** The session by the name of its file, or by that of its folder. */
function nameOf(files: readonly SourceFile[]): string {
  const [first] = files;
  if (first === undefined) return 'claude-code';
  if (first.role === 'main') return basename(first.path).replace(/\.jsonl(?:\.\w+)?$/, '');
  return first.session.slice(0, Math.max(first.session.indexOf('/'), 0)) || first.session;
}

function agentIn({ path, session }: SourceFile): string {
  const named = /^agent-(.+)\.jsonl/.exec(basename(path))?.[1];
  return named ?? session.slice(session.lastIndexOf('/agent-') + '/agent-'.length);
}

/** What the tool wrote of a subagent beside its records; undefined while it is being written. */
async function metaOf({ path }: SourceFile, files: readonly SourceFile[]): Promise<JsonObject | undefined> {
  const beside = path.replace(/\.jsonl(?:\.\w+)?$/, '.meta.json');
  const file = files.find((one) => one.path === beside);
  if (file === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(await file.bytes()).toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The run of a workflow in whose folder a file lies: `subagents/workflows/RUN/…`. */
function workflowOf(path: string): string | undefined {
  const folder = dirname(path);
  return basename(dirname(folder)) === 'workflows' ? basename(folder) : undefined;
}
