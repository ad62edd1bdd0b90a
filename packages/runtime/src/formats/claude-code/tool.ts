import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import {
  firstText,
  given,
  type Identity,
  isJsonLines,
  type Place,
  type TranscriptTool,
} from '../../plan/format.ts';
import { text } from '../../plan/text.ts';
import { agentFile, inFolder, namesIn, partIn } from './folder.ts';
import { hasBadFigure } from './message.ts';
import { planEnd } from './plan-end.ts';
import { planSource } from './plan-source.ts';
import { isClaudeCode } from './records.ts';
import { retentionIn } from './retention.ts';
import { sessionName } from './session-name.ts';

/** Claude Code, which deletes a transcript 30 days after its last use unless its settings say otherwise. */
export const claudeCode: TranscriptTool = {
  name: 'claude-code',
  title: 'Claude Code',
  file: 'a Claude Code transcript',
  roots: (place) => [join(directoryOf(place), 'projects')],
  retention: (place) => retentionIn({ ...place, directory: directoryOf(place) }),
  has: (path) => isJsonLines(path) || partOf.test(path),
  identify,
  hasRecord: (record) => isClaudeCode(record) || isSide(record) || text(record.uuid) !== undefined,
  faultIn: ({ type, message }) =>
    type === 'assistant' && isObject(message) && hasBadFigure(message.usage)
      ? 'a figure of tokens is no whole number, and counts as 0'
      : undefined,
  directoryOf: ({ cwd }) => text(cwd),
  beside,
  plan: planSource,
  planEnd,
};

/** Where it keeps its settings, and all else. */
function directoryOf({ env, home }: Place): string {
  // What is found is recorded, and the next import may begin in another working directory.
  return resolve(given(env.CLAUDE_CONFIG_DIR) ?? join(home, '.claude'));
}

/** What lies in the folder of a session: its subagents with what is known of them, and outputs that were too large. */
const partOf = /[/\\](?:subagents[/\\].*\.(?:jsonl|json)|tool-results[/\\][^/\\]+)$/;

/** The name of a file of the program itself, which says what session it is. Records may be copies of another one's. */
const ownName = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl/;

function identify(records: readonly JsonObject[], path: string): Identity | undefined {
  const inside = inFolder.exec(path) ?? [];
  const [, main, folder, name = ''] = inside;
  const facts = factsOf(records);
  const agent = firstText(records, 'agentId');
  if (main !== undefined && !agentFile.test(name)) {
    // A file of a subagent may have got another name.
    const mayBeAgent = folder === 'subagents' && isJsonLines(name) && !journalFile.test(name);
    if (mayBeAgent && records.length === 0) return undefined;
    const isAgent =
      mayBeAgent && agent !== undefined && records.some((record) => record.isSidechain === true);
    if (!isAgent) return partIn(path, inside);
  }
  const mayBeAside = inProjects.test(path);
  if (!records.some((record) => isClaudeCode(record) || (mayBeAside && isSide(record)))) return undefined;
  const file = basename(path);
  const named = firstText(records, 'sessionId');
  // A version of 2025 kept subagents beside their session, in files of their own.
  const isAlone = records.every(({ isSidechain }) => isSidechain !== false) && agent !== undefined;
  if (main !== undefined || isAlone) {
    // Whatever its path is: it may be a copy.
    const of = sessionName(named ?? main ?? ownName.exec(file)?.[1] ?? nameOf(file));
    const id = agent ?? nameOf(name).slice('agent-'.length);
    return { session: `${of}/agent-${id}`, role: 'subagent', main: of, ...facts };
  }
  const session = sessionName(ownName.exec(file)?.[1] ?? named ?? nameOf(file));
  return { session, role: 'main', main: session, ...facts };
}

/** The file of what the subagents of a workflow did. */
const journalFile = /^journal\.jsonl/;

/** Only there, records that other tools may have, too, are this one's. */
const inProjects = /[/\\]projects[/\\]/;

/** Records without an id, of which a file may begin with many. */
function isSide({ type, sessionId, leafUuid }: JsonObject): boolean {
  return typeof type === 'string' && (typeof sessionId === 'string' || typeof leafUuid === 'string');
}

function factsOf(records: readonly JsonObject[]): Pick<Identity, 'project' | 'first'> {
  const project = firstText(records, 'cwd');
  const first = firstText(records, 'timestamp');
  return { ...(project !== undefined && { project }), ...(first !== undefined && { first }) };
}

function nameOf(file: string): string {
  return file.replace(/\.jsonl(?:\.\w+)?$/, '');
}

/** The main files, the folders of the sessions, and subagents of the version that kept them beside these. */
function beside(files: readonly (Pick<Identity, 'main'> & { readonly path: string })[]): readonly string[] {
  const [found, listed] = [new Set<string>(), new Set<string>()];
  for (const { path, main } of files) {
    const inside = inFolder.exec(path);
    const place = inside === null ? dirname(path) : path.slice(0, inside.index);
    const folder = inside === null ? nameOf(basename(path)) : (inside[1] ?? main);
    for (const end of ['.jsonl', '.jsonl.zst', '.jsonl.gz', '']) found.add(join(place, `${folder}${end}`));
    // Most files of a folder have it in common.
    if (listed.has(place)) continue;
    listed.add(place);
    for (const name of namesIn(place)) if (agentFile.test(name)) found.add(join(place, name));
  }
  return [...found].filter((one) => existsSync(one));
}
