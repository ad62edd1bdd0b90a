/**
 * What a session may do and with which model: the settings and terms of its `fork/start` and of those above it
 * (`terms.ts`), its budgets and what is left of them (`budget.ts`), and the model that its last message named
 * (`carried-model.ts`, `model-for.ts`). All of it is read from tapes. `permits.ts` decides on calls by the rules of the
 * configuration, of the sessions and of those who sent messages. Imports `permissions`, `tools`, `traffic`, `model`,
 * `workspace`, `stream`, `usage` and `errors`.
 */
import type { Entry, Json, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { WorktreeRequest } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { type CallSettings, callSettingsIn } from '../model/call-settings.ts';
import { usableName } from '../model/name.ts';
import { worktreeIn } from '../workspace/notes.ts';

/** Settings of a session. Its forks inherit them unless they override them. */
export interface Settings {
  readonly instructions?: string;
  /** Name of a model. */
  readonly model?: string;
  /** Settings of its model calls. */
  readonly call?: CallSettings;
  /** Names of the tools that it and the sessions below it may call. Default: those of its parent. */
  readonly tools?: readonly string[];
  /** Names of those that its own model may call; the others it only hands on. Its forks do not inherit them. */
  readonly uses?: readonly string[];
  /** Its rules, each a text. Those of the sessions above it hold for it, too. */
  readonly rules?: readonly string[];
  /** Keeps the raw traffic of it and of the sessions below it. */
  readonly record?: 'raw';
  /** Metadata of a branch, for the application. */
  readonly metadata?: JsonObject;
}

/** Terms of one forked session. Its own forks do not inherit them. */
export interface Terms {
  /** The parent's run that forked it. */
  readonly run?: string;
  /** ULIDs of the sessions whose messages that run answered, or whose rules bound it in this way: theirs count here, too. */
  readonly senders?: readonly string[];
  /** Whether it inherits the parent's whole view, which the provider's cache then covers, or a part. */
  readonly context?: 'whole' | 'part';
  /** Budget of its own model calls. */
  readonly budget?: Budget;
  /** Budget of its own model calls and those of its descendants. */
  readonly treeBudget?: Budget;
  /** JSON Schema of its result. */
  readonly output?: JsonObject;
  /** Default strategy of its merge. */
  readonly strategy?: 'result' | 'summary' | 'structured';
}

/** The settings and terms of a session, from its first own entry. They never change. A root has no terms. */
export interface Origin {
  readonly settings: Settings;
  readonly terms: Terms;
  /** The repository and commit of the session's worktree, if it has one. */
  readonly worktree?: WorktreeRequest;
}

/** The current row of a session, and its origin. */
export interface SessionFacts {
  readonly info: SessionInfo;
  readonly origin: Origin;
  /** Reads the sessions above it, the nearest first, where someone has them already. */
  readonly above?: () => Promise<readonly SessionFacts[]>;
}

/** Reads the settings and terms of a session. */
export async function originOf(store: TapeStore, info: SessionInfo): Promise<Origin> {
  const at = info.base + 1;
  for await (const entry of store.entries.read(info.id, { from: at, to: at })) {
    const { payload } = entry;
    if (!isObject(payload)) continue;
    const worktree = worktreeIn(entry);
    return {
      settings: usableSettings(settingsIn(payload.settings), entry),
      terms: termsIn(payload.terms),
      ...(worktree !== undefined && { worktree }),
    };
  }
  return { settings: {}, terms: {} };
}

/** Settings without a model or a record that does not count here. What rules of another home allow, asks here. */
function usableSettings({ model: recorded, rules, record, ...settings }: Settings, entry: Entry): Settings {
  const model = usableName(recorded, entry);
  const usable = entry.elsewhere === true ? rules?.map((rule) => rule.replace(/^\s*allow\b/, 'ask')) : rules;
  return {
    ...settings,
    ...(model !== undefined && { model }),
    ...(usable !== undefined && { rules: usable }),
    ...(record !== undefined && entry.elsewhere !== true && { record }),
  };
}

/** Adds its origin to a session's row. */
export async function factsOf(store: TapeStore, info: SessionInfo): Promise<SessionFacts> {
  return { info, origin: await originOf(store, info) };
}

/** A session and its ancestors up to the root, each with its origin. */
export type Ancestry = readonly [SessionFacts, ...SessionFacts[]];

/** Reads the line of a session. */
export async function ancestryOf(store: TapeStore, facts: SessionFacts): Promise<Ancestry> {
  const line: [SessionFacts, ...SessionFacts[]] = [facts];
  for (let at = await parentOf(store, facts.info); at !== undefined; at = await parentOf(store, at))
    line.push(await factsOf(store, at));
  return line;
}

/** The tools that every session of a line may call; undefined when no session restricts them. Pure. */
export function allowedTools(line: Ancestry): ReadonlySet<string> | undefined {
  return line
    .flatMap(({ origin: { settings } }) => (settings.tools === undefined ? [] : [new Set(settings.tools)]))
    .reduce<ReadonlySet<string> | undefined>(
      (allowed, tools) => tools.intersection(allowed ?? tools),
      undefined,
    );
}

/** The tools that the model of a session may call: those of its line, and of these the ones that it uses. Pure. */
export function usedTools(line: Ancestry): ReadonlySet<string> | undefined {
  const allowed = allowedTools(line);
  const uses = usesOf(line);
  return uses === undefined ? allowed : new Set(uses).intersection(allowed ?? new Set(uses));
}

/** The tools that a session uses, as it says. A branch goes on as the session that it was made of. */
function usesOf([{ info, origin }, ...above]: readonly SessionFacts[] & Ancestry):
  | readonly string[]
  | undefined {
  const { uses } = origin.settings;
  const [next, ...rest] = above;
  return uses ?? (isBranch(info) && next !== undefined ? usesOf([next, ...rest]) : undefined);
}

/** The tools that a new session would hand on and use. */
export interface ToolLists {
  readonly tools?: readonly string[] | undefined;
  readonly uses?: readonly string[] | undefined;
}

/**
 * Refuses tools that no session of a line may hand on, and uses of tools that a new session below it would not have.
 * @param act what cannot be done: `fork 'main'`
 * @throws SESSION_BAD_INPUT
 */
export function assertCeiling(line: readonly SessionFacts[], { tools, uses }: ToolLists, act: string): void {
  const [first, ...rest] = line;
  const ceiling = first === undefined ? undefined : allowedTools([first, ...rest]);
  const refuse = (tool: string, known: Iterable<string>) =>
    new SessionError(
      'SESSION_BAD_INPUT',
      `cannot ${act} with tool '${tool}': the tools that it may have are ${[...known].join(', ') || 'none'}`,
      { data: { tool, tools: [...known] } },
    );
  const outside = ceiling === undefined ? undefined : tools?.find((name) => !ceiling.has(name));
  if (outside !== undefined && ceiling !== undefined) throw refuse(outside, ceiling);
  const own = tools === undefined ? ceiling : new Set(tools);
  const unusable = own === undefined ? undefined : uses?.find((name) => !own.has(name));
  if (unusable !== undefined && own !== undefined) throw refuse(unusable, own);
}

/** The instructions that a line of sessions keeps. */
export interface KeptInstructions {
  readonly text: string;
  /** Whether they are all of the system prompt, fixed at a fork; those of a root are its first part. */
  readonly isWhole: boolean;
}

/** The instructions of a session, else those of its nearest ancestor that keeps some. Pure. */
export function keptInstructions(line: Ancestry): KeptInstructions | undefined {
  for (const { info, origin } of line) {
    const { instructions } = origin.settings;
    if (instructions !== undefined) return { text: instructions, isWhole: info.parentId !== undefined };
  }
  return undefined;
}

/** The session that another was forked from. */
export async function parentOf(store: TapeStore, info: SessionInfo): Promise<SessionInfo | undefined> {
  return info.parentId === undefined ? undefined : await store.sessions.find(info.parentId);
}

/** Reads settings from a tape, which is untrusted data: ignores values of the wrong type. */
function settingsIn(value: Json | undefined): Settings {
  if (!isObject(value)) return {};
  const { instructions, model, call, tools, uses, rules, record, metadata } = value;
  const names = (list: readonly Json[]) => list.filter((name) => typeof name === 'string');
  return {
    ...(typeof instructions === 'string' && { instructions }),
    ...(typeof model === 'string' && { model }),
    ...(isObject(call) && { call: callSettingsIn(call) }),
    ...(Array.isArray(tools) && { tools: names(tools) }),
    ...(Array.isArray(uses) && { uses: names(uses) }),
    // A rule that is no text is one that cannot be read.
    ...(rules !== undefined && {
      rules: [rules].flat().map((rule) => (typeof rule === 'string' ? rule : '')),
    }),
    ...(record === 'raw' && { record }),
    ...(isObject(metadata) && { metadata }),
  };
}

function termsIn(value: Json | undefined): Terms {
  if (!isObject(value)) return {};
  const { run, senders, context, budget, treeBudget, output, strategy } = value;
  return {
    ...(typeof run === 'string' && { run }),
    ...(Array.isArray(senders) && { senders: senders.filter((id) => typeof id === 'string') }),
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

/** Whether a session is a branch: forked for a user, without a task, and never merged automatically. */
export function isBranch({ parentId, kind }: Pick<SessionInfo, 'parentId' | 'kind'>): boolean {
  return parentId !== undefined && kind === 'session';
}

/** The limits of a session. Reaching one halts its run. */
export interface Budget {
  /** Model calls, including those for summaries. */
  readonly steps?: number;
  /** All tokens of its model calls. */
  readonly tokens?: number;
  /** Milliseconds since it was forked. */
  readonly timeMs?: number;
  /** Cost in the unit of the deck's `cost` function, which it requires. */
  readonly cost?: number;
}
