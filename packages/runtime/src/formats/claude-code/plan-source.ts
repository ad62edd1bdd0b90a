import { basename, dirname } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { RecordList } from '../../lines/json-lines.ts';
import type { SourceFile, SourcePlan } from '../../plan/format.ts';
import { text } from '../../plan/text.ts';
import type { AgentSource } from './agents.ts';
import { FirstReading } from './first-reading.ts';
import type { SavedOutput } from './outputs.ts';
import { agentKey } from './plan-agent.ts';
import { planClaudeCode } from './plan-of.ts';

/** Reads the files of one session of Claude Code as a tree of conversations. */
export async function planSource(files: readonly SourceFile[]): Promise<SourcePlan> {
  const main = files.find(({ role }) => role === 'main');
  const agents = await agentsIn(files);
  // A copy of the folder has the same runs and outputs.
  const beside = new Map<string, JsonObject>();
  for (const file of files.filter(({ path }) => /^journal\.jsonl/.test(basename(path)))) {
    const { records } = await file.lines();
    const run = workflowOf(file.path) ?? '';
    for (const [i, { value }] of [...records].entries()) beside.set(`cc:journal:${run}:${i + 1}`, value);
  }
  const outputs = new Map<string, SavedOutput>();
  for (const file of files.filter(({ path }) => basename(dirname(path)) === 'tool-results')) {
    const name = basename(file.path);
    if (!outputs.has(name)) outputs.set(name, { name, bytes: await file.bytes() });
  }
  const first = new FirstReading();
  const { records: lines } = (await main?.lines((line) => first.add(line))) ?? { records: [] };
  const plan = planClaudeCode({
    ...{ name: nameOf(files), lines, first, agents: [...agents.values()] },
    beside: [...beside].map(([key, value]) => ({ key, value })),
    outputs: [...outputs.values()],
  });
  const key = plan.conversations[0]?.file ?? '';
  const found = [...agents].map(([id, { path }]) => [path, agentKey(key, id)] as const);
  return { ...plan, files: new Map([...(main === undefined ? [] : [[main.path, key] as const]), ...found]) };
}

interface AgentFile extends AgentSource {
  readonly path: string;
}

/** The subagents of a session, each once, whatever its file is called and however many copies there are. */
async function agentsIn(files: readonly SourceFile[]): Promise<ReadonlyMap<string, AgentFile>> {
  const agents = new Map<string, AgentFile>();
  for (const file of files.filter(({ role }) => role === 'subagent')) {
    const { path } = file;
    const { records } = await file.lines();
    const id = agentIn(file, records);
    const meta = await metaOf(path, id, files);
    const workflow = workflowOf(path);
    const one: AgentFile = {
      ...{ id, path, lines: records },
      ...(meta !== undefined && { meta }),
      ...(workflow !== undefined && { workflow }),
    };
    const other = agents.get(id);
    // Of copies, the one that has most.
    const [most, least] =
      other === undefined || records.length > other.lines.length ? [one, other] : [other, one];
    agents.set(id, { ...least, ...most });
  }
  return agents;
}

/** The session by the name of its file, or by that of its folder. */
function nameOf(files: readonly SourceFile[]): string {
  const [first] = files;
  if (first === undefined) return 'claude-code';
  if (first.role === 'main') return basename(first.path).replace(/\.jsonl(?:\.\w+)?$/, '');
  return first.session.slice(0, Math.max(first.session.indexOf('/'), 0)) || first.session;
}

/** The subagent of a file, as its records name it. */
function agentIn({ path, session }: SourceFile, records: RecordList): string {
  for (const { value } of records) {
    const named = text(value.agentId);
    if (named !== undefined) return named;
  }
  const [, named] = /^agent-(.+)\.jsonl/.exec(basename(path)) ?? [];
  return named ?? session.slice(session.lastIndexOf('/agent-') + '/agent-'.length);
}

/**
 * What the tool wrote of a subagent beside its records, under the name of the file or under that which the tool gave it;
 * undefined while it is being written.
 */
async function metaOf(
  path: string,
  id: string,
  files: readonly SourceFile[],
): Promise<JsonObject | undefined> {
  const beside = path.replace(/\.jsonl(?:\.\w+)?$/, '.meta.json');
  const file =
    files.find((one) => one.path === beside) ??
    files.find((one) => basename(one.path) === `agent-${id}.meta.json`);
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
