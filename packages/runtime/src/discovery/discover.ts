import { statSync } from 'node:fs';
import { basename, sep } from 'node:path';
import { ImportError } from '../lines/errors.ts';
import type { LineFault } from '../lines/index.ts';
import { isJsonLines, type Place, type TranscriptTool } from '../plan/format.ts';
import { isUnchanged, type Source } from '../sources/index.ts';
import { Answers } from './answers.ts';
import { type Excludes, makeExcludes } from './excludes.ts';
import { type FoundFile, idOf } from './found-file.ts';
import { isHistory, looksLike } from './later-tools.ts';
import { type LeftOut, withoutParts } from './left-out.ts';
import { type Head, peek } from './peek.ts';
import { type Problem, Walk, type WalkedFile } from './walk.ts';
import { changedSince, wantedOf, withMain } from './wanted.ts';

/** A file that looks like a transcript and belongs to no tool that is known. */
export interface Stranger {
  readonly path: string;
  /** What it looks like, as `a Copilot session`. */
  readonly like?: string;
}

/** What a search found. */
export interface Discovery {
  readonly files: readonly FoundFile[];
  /** Those that the tool, the project or the time leaves out which was sought. */
  readonly narrowed: readonly FoundFile[];
  readonly strangers: readonly Stranger[];
  /** Files and folders that cannot be read. */
  readonly problems: readonly Problem[];
  /** How many files and folders a pattern left out. */
  readonly excluded: number;
  /** How many files have no content. */
  readonly empty: number;
  /** Whether the sessions of a working directory are left out. */
  readonly excludesProject: (directory: string) => boolean;
  /**
   * The working directories that a `.tapeignore` leaves out, each with the directory of that, as far as the search came to them:
   * `SourceTable.noteIgnored` keeps them.
   */
  readonly ignored: ReadonlyMap<string, string>;
}

/** What to search for, and where. */
export interface Search {
  readonly place: Place;
  readonly tools: readonly TranscriptTool[];
  /** Searches these files and folders alone, and not those of the tools. */
  readonly paths?: readonly string[];
  /** Further folders. */
  readonly roots?: readonly string[];
  /** Patterns of what is left out. */
  readonly exclude?: readonly string[];
  /** The working directories that a `.tapeignore` left out before, as `SourceTable.ignored` has them: it may be gone with them. */
  readonly ignored?: ReadonlyMap<string, string>;
  /** The name of the only tool. */
  readonly tool?: string;
  /** The working directory at or below which a session was. */
  readonly project?: string;
  /** Leaves out conversations of which no file has changed since this time, in milliseconds since 1970. */
  readonly since?: number;
  /** What is known of a path, so that an unchanged file is not opened. */
  readonly known?: (path: string) => Source | undefined;
}

/**
 * Finds the transcripts of the tools on this machine. Reads the beginning of each file that is not known.
 */
export async function discover(search: Search): Promise<Discovery> {
  const { place, tools, tool: only, since } = search;
  const excludes = await makeExcludes(search.exclude ?? [], place, search.ignored);
  const walk = new Walk(excludes, search.known);
  const looking: Looking = {
    search,
    excludes,
    answers: new Answers(),
    files: [],
    strangers: [],
    problems: [],
    excluded: 0,
    leftOut: new Map(),
    empty: 0,
  };
  const { answers } = looking;
  const has = (tool: TranscriptTool, path: string, named: string) =>
    answers.of(tool, path, () => tool.has(named)) === true;
  const isPlausible = (path: string, of: readonly TranscriptTool[]) =>
    isJsonLines(path) || of.some((tool) => has(tool, path, path));
  const look = async (file: WalkedFile, tool?: TranscriptTool) => await identify(file, tool, looking);
  // A file that needs no look inside waits for nothing.
  const isDone = (file: WalkedFile) => isKnown(file, looking);
  if (search.paths === undefined) {
    for (const tool of tools.filter(({ name }) => only === undefined || name === only))
      for (const root of rootsOf(tool, looking).filter(mayBeThere))
        for (const file of walk.files(root, (path) => has(tool, path, below(root, path))))
          if (!isDone(file)) await look(file, tool);
  }
  // A file of a folder of no tool may be a transcript, by its name; one that the user named also if that seldom is.
  const isAsked = search.paths !== undefined;
  const mayBe = (path: string) => isPlausible(path, tools) || (isAsked && path.endsWith('.json'));
  for (const root of search.paths ?? search.roots ?? [])
    for (const file of walk.files(root, (path) => path === root || mayBe(path))) {
      if (isDone(file)) continue;
      if (file.path === root || isPlausible(file.path, tools)) await look(file);
      else await guess(file, looking);
    }
  if (search.paths !== undefined) {
    // Who names a file of a conversation means all of it.
    const named = new Set(looking.files.map(idOf));
    const byTool = Map.groupBy([...looking.files], ({ tool }) => tool);
    const strangers = looking.strangers.length;
    for (const [tool, own] of byTool)
      for (const place of besideOf(tool, own, looking))
        for (const file of walk.filesBeside(place, (path) => isPlausible(path, [tool])))
          if (!isDone(file)) await look(file);
    looking.strangers.length = strangers;
    looking.files.splice(0, Number.POSITIVE_INFINITY, ...looking.files.filter((one) => named.has(idOf(one))));
  }
  const files = withoutParts(looking.files, looking.leftOut);
  const all = withMain(files);
  const wanted = wantedOf(changedSince(since, all), search);
  const taken = all.length === wanted.length ? undefined : new Set(wanted);
  const { strangers, problems, excluded, empty } = looking;
  return {
    files: wanted,
    narrowed: taken === undefined ? [] : all.filter((file) => !taken.has(file)),
    strangers: only === undefined && search.project === undefined ? strangers : [],
    problems: [...walk.problems, ...problems, ...answers.problems],
    excluded: walk.excluded + excluded + looking.files.length - files.length,
    empty,
    excludesProject: excludes.excludesProject,
    ignored: excludes.ignored,
  };
}

/** A search in progress. */
interface Looking extends Mutable<Pick<Discovery, 'excluded' | 'empty'>> {
  readonly search: Search;
  readonly excludes: Excludes;
  readonly answers: Answers;
  readonly files: FoundFile[];
  readonly strangers: Stranger[];
  readonly problems: Problem[];
  /** The files that are left out by their working directories, by their conversations. */
  readonly leftOut: Map<string, readonly LeftOut[]>;
}

function rootsOf(tool: TranscriptTool, { answers, search: { place } }: Looking): readonly string[] {
  return answers.of(tool, place.home, () => [...tool.roots(place)]) ?? [];
}

function besideOf(tool: TranscriptTool, own: readonly FoundFile[], { answers }: Looking): readonly string[] {
  return answers.of(tool, own[0]?.path ?? '', () => [...(tool.beside?.(own) ?? [])]) ?? [];
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

async function identify(
  { path, facts }: WalkedFile,
  owner: TranscriptTool | undefined,
  looking: Looking,
): Promise<void> {
  const { excludes, files, strangers, problems } = looking;
  const found = await lookInto(path, owner, looking);
  if (found === undefined) return;
  if ('why' in found) problems.push(found);
  else if ('like' in found) strangers.push({ path, ...(found.like !== undefined && { like: found.like }) });
  else if (found.project !== undefined && excludes.excludesProject(found.project))
    leaveOut({ path, ...found }, looking);
  else files.push({ path, facts, ...found });
}

function leaveOut(file: LeftOut, looking: Looking): void {
  const id = idOf(file);
  looking.excluded += 1;
  looking.leftOut.set(id, [...(looking.leftOut.get(id) ?? []), file]);
}

/** Takes a file that a tool knows, and passes over any other one: most files with its ending are none of a tool. */
async function guess(file: WalkedFile, looking: Looking): Promise<void> {
  const others = { ...looking, strangers: [], problems: [] };
  await identify(file, undefined, others);
  looking.excluded = others.excluded;
  looking.answers.clear(file.path);
}

type Named = Omit<FoundFile, 'path' | 'facts'>;

/** Takes a file that has not changed for what it is known as. */
function isKnown({ path, facts, known }: WalkedFile, looking: Looking): boolean {
  const { known: knownAt, tools } = looking.search;
  const source = known ?? knownAt?.(path);
  if (source === undefined || !isUnchanged(source, facts)) return false;
  const tool = tools.find(({ name }) => name === source.tool);
  if (tool === undefined) return false;
  const { session, main, role, project, first } = source;
  if (project !== undefined && looking.excludes.excludesProject(project)) {
    leaveOut({ path, tool, main, role }, looking);
    return true;
  }
  // Without objects that are only spread: nearly every file comes this way.
  const file: Mutable<FoundFile> = { path, facts, tool, session, main, role };
  if (project !== undefined) file.project = project;
  if (first !== undefined) file.first = first;
  looking.files.push(file);
  return true;
}

async function lookInto(
  path: string,
  owner: TranscriptTool | undefined,
  looking: Looking,
): Promise<Named | Problem | { readonly like: string | undefined } | undefined> {
  // What is not read yet needs no look inside: its folder says whose it is.
  if (owner !== undefined && owner.plan === undefined)
    return { tool: owner, session: basename(path), main: basename(path), role: 'main' };
  // In the folder of a tool it comes first; any other one may have put a file there.
  const tools = [
    ...(owner === undefined ? [] : [owner]),
    ...looking.search.tools.filter((tool) => tool !== owner),
  ];
  const { answers } = looking;
  const byName = tools.find((tool) => answers.identity(tool, [], path)?.role === 'part');
  try {
    const isEnough = (records: Parameters<TranscriptTool['identify']>[0]) =>
      tools.some((tool) => answers.identity(tool, records, path)?.project !== undefined);
    const head: Head = byName === undefined ? await peek(path, isEnough) : { records: [], isEmpty: false };
    // What a format said of less counts no more.
    answers.clear(path);
    for (const tool of byName === undefined ? tools : [byName]) {
      const identity = answers.identity(tool, head.records, path);
      if (identity === undefined) continue;
      answers.clear(path);
      return { tool, ...identity };
    }
    if (answers.hasFailed(path)) return undefined;
    const isAsked = owner !== undefined || looking.search.paths !== undefined;
    if (head.fault !== undefined && isAsked) return { path, why: placed(head.fault) };
    // What was typed alone makes no session.
    if (isHistory(head.records, path)) return undefined;
    if (!head.isEmpty) return { like: looksLike(head.records, path) };
    looking.empty += 1;
    return undefined;
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    return { path, why: String(error.data.why ?? error.message), error };
  }
}

/** Whether there may be something: what this user may not look at is named, and not passed over as if there was nothing. */
function mayBeThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** What is wrong with a file none of whose first lines is a record. */
function placed({ line, offset, why }: LineFault): string {
  return `line ${line}, byte ${offset}: ${why}`;
}

/** What of a path lies below a folder through which a walk came to it. */
function below(folder: string, path: string): string {
  return path.slice(folder.endsWith(sep) ? folder.length : folder.length + 1);
}
