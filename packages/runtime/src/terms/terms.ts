/**
 * What a session may do and with which model: the settings and terms of its `fork/start` and of those above it
 * (`terms.ts`), its budgets and what is left of them (`budget.ts`), and the model that its last message named
 * (`carried-model.ts`, `model-for.ts`). All of it is read from tapes. Imports `model`, `workspace`, `usage` and
 * `errors`.
 */
import {
  isObject,
  type Json,
  type JsonObject,
  type SessionInfo,
  type TapeStore,
  type WorktreeRequest,
} from '@tapedeck/tape';
import { worktreeIn } from '../workspace/notes.ts';

/** What a forked session runs with. Its own forks have the same, unless they say otherwise (N58, B16). */
export interface Settings {
  readonly instructions?: string;
  /** A model by its name. */
  readonly model?: string;
  /** The tools that it may call, by their names; without it those that its parent may (D526). */
  readonly tools?: readonly string[];
  /** Facts about a branch, which nothing here goes by. */
  readonly metadata?: JsonObject;
}

/** What holds for one forked session, and not for its own forks. */
export interface Terms {
  /** The parent's run that asked for it. */
  readonly run?: string;
  /** What it inherits: all that its parent's model was shown, so that a provider's cache holds it, or less. */
  readonly context?: 'whole' | 'part';
  /** For its own model calls. */
  readonly budget?: Budget;
  /** For its own and those of all sessions under it. */
  readonly treeBudget?: Budget;
  /** JSON Schema of the result that it is asked for at its end. */
  readonly output?: JsonObject;
  /** How its result is merged. */
  readonly strategy?: 'result' | 'summary' | 'structured';
}

/** What a session was forked with: facts of its first own entry, which never change. Empty for a root. */
export interface Origin {
  readonly settings: Settings;
  readonly terms: Terms;
  /** The repository and commit of the worktree that the session works in, if it has one of its own. */
  readonly worktree?: WorktreeRequest;
}

/** A session as it stands, and what it was forked with. */
export interface SessionFacts {
  readonly info: SessionInfo;
  readonly origin: Origin;
}

/** Reads what a session was forked with. */
export async function originOf(store: TapeStore, info: SessionInfo): Promise<Origin> {
  if (info.parentId === undefined) return { settings: {}, terms: {} };
  const at = info.base + 1;
  for await (const entry of store.read(info.id, { from: at, to: at })) {
    const { payload } = entry;
    if (!isObject(payload)) continue;
    const worktree = worktreeIn(entry);
    return {
      settings: settingsIn(payload.settings),
      terms: termsIn(payload.terms),
      ...(worktree !== undefined && { worktree }),
    };
  }
  return { settings: {}, terms: {} };
}

/** A session and what it was forked with. */
export async function factsOf(store: TapeStore, info: SessionInfo): Promise<SessionFacts> {
  return { info, origin: await originOf(store, info) };
}

/** A session, its parent, and so on up to the root, each with what it was forked with. */
export type Line = readonly [SessionFacts, ...SessionFacts[]];

/** Reads the line of a session. */
export async function lineOf(store: TapeStore, facts: SessionFacts): Promise<Line> {
  const line: [SessionFacts, ...SessionFacts[]] = [facts];
  for (let at = await parentOf(store, facts.info); at !== undefined; at = await parentOf(store, at))
    line.push(await factsOf(store, at));
  return line;
}

/** The tools that a session may call: those that every session of its line may. Undefined when none of them says. Pure. */
export function allowedTools(line: Line): ReadonlySet<string> | undefined {
  return line
    .flatMap(({ origin: { settings } }) => (settings.tools === undefined ? [] : [new Set(settings.tools)]))
    .reduce<ReadonlySet<string> | undefined>(
      (allowed, tools) => tools.intersection(allowed ?? tools),
      undefined,
    );
}

/** The session that another was forked from. */
export async function parentOf(store: TapeStore, info: SessionInfo): Promise<SessionInfo | undefined> {
  return info.parentId === undefined ? undefined : await store.find(info.parentId);
}

/** A tape is data: what is no setting in it is none. */
function settingsIn(value: Json | undefined): Settings {
  if (!isObject(value)) return {};
  const { instructions, model, tools, metadata } = value;
  return {
    ...(typeof instructions === 'string' && { instructions }),
    ...(typeof model === 'string' && { model }),
    ...(Array.isArray(tools) && { tools: tools.filter((name) => typeof name === 'string') }),
    ...(isObject(metadata) && { metadata }),
  };
}

function termsIn(value: Json | undefined): Terms {
  if (!isObject(value)) return {};
  const { run, context, budget, treeBudget, output, strategy } = value;
  return {
    ...(typeof run === 'string' && { run }),
    ...((context === 'whole' || context === 'part') && { context }),
    ...(isObject(budget) && { budget: budgetIn(budget) }),
    ...(isObject(treeBudget) && { treeBudget: budgetIn(treeBudget) }),
    ...(isObject(output) && { output }),
    ...((strategy === 'result' || strategy === 'summary' || strategy === 'structured') && { strategy }),
  };
}

function budgetIn(value: JsonObject): Budget {
  const numbers = Object.entries(value).filter(([, limit]) => typeof limit === 'number');
  return Object.fromEntries(numbers) as Budget;
}

/** Whether a session is a branch: it was forked for people, has no task, and nothing brings it home by itself. */
export function isBranch({ parentId, kind }: Pick<SessionInfo, 'parentId' | 'kind'>): boolean {
  return parentId !== undefined && kind === 'session';
}

/** How much a session may take. What is reached ends its run as halted. */
export interface Budget {
  /** Model calls, those for summaries too. */
  readonly steps?: number;
  /** All tokens of its model calls. */
  readonly tokens?: number;
  /** Milliseconds since it was forked. */
  readonly timeMs?: number;
  /** In the unit of the deck's `cost`, without which there can be none. */
  readonly cost?: number;
}
