import { homedir } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { SessionError } from '../errors.ts';
import {
  type Claim,
  type ClaimingCall,
  claimsOf,
  claimText,
  type Target,
  targetsIn,
} from '../permissions/claim.ts';
import {
  areRuled,
  decide,
  type Layer,
  type Party,
  type Ruling,
  type ScopedRule,
} from '../permissions/decide.ts';
import { offersFor } from '../permissions/offers.ts';
import { covers } from '../permissions/pattern.ts';
import { rememberedPaths } from '../permissions/real-path.ts';
import {
  parseRule,
  parseRules,
  type Rule,
  RuleFault,
  type RuleTexts,
  unreadable,
} from '../permissions/rule.ts';
import type { Reach } from '../tools/file-place.ts';
import type { ToolTraits } from '../tools/traits.ts';
import { workspaceOf } from '../workspace/open.ts';
import { type Ancestry, ancestryOf, factsOf } from './terms.ts';

/** Whether file systems take names in another case as the same, which those of these systems do by default. */
const ignoresCase = process.platform === 'darwin' || process.platform === 'win32';

/** The name of the note about an answer that counts for good. */
export const grantedNote = 'permission/granted';

/** The verdict on a call, and what decided it. */
export interface Permit {
  readonly verdict: 'deny' | 'ask' | 'allow';
  /** The claim that decided: `write(/etc/hosts)`; a tool alone is its name. */
  readonly claim: string;
  /** The rule that decided, as it was written; absent: no rule is about the claim. */
  readonly rule?: string;
  /**
   * Where the rule stands: `manifest` (the deck), `project` (the home), `session`; `grant` is an answer of a person. `tool`:
   * no rule, the tool itself asks.
   */
  readonly scope?: 'manifest' | 'project' | 'session' | 'grant' | 'tool';
  /** The session that decided, of the line of the session or of a sender; absent without rules. */
  readonly session?: string;
  /**
   * Why the claim cannot be decided on: where its path leads is unknown, or the sender of the message is. Or why the tool
   * cannot be called.
   */
  readonly fault?: string;
  /** All that the call claims to do. */
  readonly claims: readonly string[];
  /** The real paths that it claims to read and write. */
  readonly files: Readonly<Record<'read' | 'write', readonly string[]>>;
  /** What an answer can be given for, for good: parts of rules behind their verdicts, narrowest first. */
  readonly offers: readonly string[];
  /** The same for a tool that asks by itself. */
  readonly toolOffers: readonly string[];
  /**
   * The sessions whose messages the run answers and whose rules ask: they ask again, whatever answer counts for good in
   * the session that runs.
   */
  readonly askedFor: readonly string[];
  /** Whether what a person has granted covers a tool that asks by itself. */
  readonly isGranted: boolean;
}

/** What decides on the calls of a session. */
export interface PermitParts {
  readonly store: TapeStore;
  /** The directory of the home, which has the worktrees. */
  readonly home: string | undefined;
  readonly config: { readonly permissions?: RuleTexts; readonly projectPermissions?: RuleTexts };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string | undefined;
}

/** A session whose calls are decided on: its line, and the directory of its worktree. */
export interface PermitSubject {
  readonly line: Ancestry;
  readonly workspace: string | undefined;
}

/**
 * Opens what decides on the calls of a session: the rules of its line, of these senders, and of those that bound the run
 * which forked it.
 */
export async function openPermits(
  parts: PermitParts,
  subject: PermitSubject,
  senders: readonly string[] = [],
): Promise<Permits> {
  const permits = new Permits(parts, subject);
  const { terms } = subject.line[0].origin;
  for (const id of [...(terms.senders ?? []), ...senders]) await permits.addSender(id);
  return permits;
}

/** Decides on the calls of one session, by the rules of its line and of those whose messages its run answers. */
export class Permits {
  readonly #parts: PermitParts;
  readonly #subject: PermitSubject;
  readonly #own: Omit<Party, 'grants'>;
  readonly #home: string | undefined;
  readonly #senders = new Map<string, Party>();
  /** What was granted so far, and the position after which more can follow. */
  #granted: { readonly grants: readonly ScopedRule[]; readonly to: Seq } | undefined;

  constructor(parts: PermitParts, subject: PermitSubject) {
    this.#parts = parts;
    this.#subject = subject;
    this.#own = partyOf(parts, { ...subject, workspace: subject.workspace ?? directoryOf(parts) });
    this.#home = parts.env.HOME ?? homedir();
  }

  /** Whether any scope has a rule. Without one, everything is allowed. */
  get isRuled(): boolean {
    return areRuled([{ ...this.#own, grants: [] }, ...this.#senders.values()]);
  }

  /** The rules of each session of the line, root first, as they are decided by. */
  get lineage(): readonly Layer[] {
    return this.#own.lineage;
  }

  /** What persons have granted the session for good. */
  async grants(): Promise<readonly ScopedRule[]> {
    const { info } = this.#subject.line[0];
    const before = this.#granted ?? { grants: [], to: 0 };
    const more = await grantsOf(this.#parts.store, info, before.to + 1);
    const to = Math.max(before.to, info.head, ...more.map(({ seq }) => seq));
    this.#granted = { grants: [...before.grants, ...more.map(({ rule }) => rule)], to };
    return this.#granted.grants;
  }

  /**
   * Adds a session whose message the run answers: what it may not do, it cannot have done. The rules of one that the home
   * does not have are not known, so nothing is allowed for it.
   */
  async addSender(id: string): Promise<void> {
    const { store } = this.#parts;
    const [{ info: own }] = this.#subject.line;
    if (this.#senders.has(id) || id === own.id) return;
    const info = await find(store, id);
    if (info?.id !== id) {
      this.#senders.set(id, unknownSender(id));
      return;
    }
    const line = await ancestryOf(store, await factsOf(store, info));
    const { worktree } = line[0].origin;
    const workspace =
      worktree === undefined ? directoryOf(this.#parts) : await workspaceOf(this.#parts, info.id);
    const party = partyOf(this.#parts, { line, workspace });
    const grants = await grantsOf(store, info, 1);
    this.#senders.set(id, { ...party, grants: grants.map(({ rule }) => rule) });
  }

  /** Decides on a call of a tool with these traits. */
  async permit(call: ClaimingCall, traits: ToolTraits): Promise<Permit> {
    const real = rememberedPaths();
    const { workspace } = this.#own;
    const disk = { home: this.#home, real, ignoresCase };
    const targets = await this.#targets(targetsIn(traits, call.input));
    const target = (text: string) => targets.get(text) ?? { session: text };
    const claims = claimsOf(call, traits, { place: { ...disk, workspace }, target });
    const own = { ...this.#own, grants: await this.grants() };
    const parties = [own, ...this.#senders.values()];
    const rulings = decide(parties, claims, disk);
    const granted = (claim: Claim) =>
      own.grants.findLast((rule) => covers(rule, claim, { ...disk, ...own }))?.verdict === 'allow';
    const askedFor = [...this.#senders.values()]
      .filter((sender) => rulings[0].verdict === 'ask' && decide([sender], claims, disk)[0].verdict === 'ask')
      .map(({ session }) => session);
    return { ...permitOf(rulings, claims), askedFor, isGranted: isGranted(rulings, granted) };
  }

  /**
   * Which files a call may reach while it runs, by their real paths: what the rules allow, and of what they ask about that
   * which lies in a place that the call was let through with.
   */
  async reach({ files }: Pick<Permit, 'files'>): Promise<Reach> {
    const own = { ...this.#own, grants: await this.grants() };
    const parties = [own, ...this.#senders.values()];
    const disk = { home: this.#home, real: rememberedPaths(), ignoresCase };
    return (kind, path) => {
      const [{ verdict }] = decide(parties, [{ kind, what: path }], disk);
      const isIn = (place: string) => path === place || path.startsWith(place === '/' ? '/' : `${place}/`);
      return verdict === 'allow' || (verdict === 'ask' && files[kind].some(isIn));
    };
  }

  /** The sessions that texts name, with their parents. */
  async #targets(texts: readonly string[]): Promise<ReadonlyMap<string, Target>> {
    const { store } = this.#parts;
    const [{ info: own }] = this.#subject.line;
    const found = new Map<string, Target>();
    for (const text of texts) {
      const ref = text === 'manager' ? own.parentId : text;
      const info = ref === undefined || ref === '' ? undefined : await find(store, ref);
      if (info !== undefined) found.set(text, { session: info.session, parent: info.parent });
    }
    return found;
  }
}

function unknownSender(id: string): Party {
  const fault = `the session that sent the message, '${id}', is not known here`;
  return { session: id, parent: undefined, workspace: undefined, lineage: [], grants: [], fault };
}

async function find(store: TapeStore, ref: string): Promise<SessionInfo | undefined> {
  try {
    return await store.sessions.find(ref);
  } catch {
    // A text that can be no name, or means several sessions: the claim names it as it is.
    return undefined;
  }
}

function permitOf(
  rulings: readonly [Ruling, ...Ruling[]],
  claims: readonly Claim[],
): Omit<Permit, 'isGranted' | 'askedFor'> {
  const { verdict, claim, rule, session } = decisive(rulings);
  const asks = rulings.filter((ruling) => ruling.verdict === 'ask');
  return {
    verdict,
    claim: claimText(claim),
    ...(rule !== undefined && { rule: rule.text, scope: rule.scope }),
    ...(session !== undefined && { session }),
    ...(claim.fault !== undefined && { fault: claim.fault }),
    claims: claims.map(claimText),
    files: { read: pathsOf(claims, 'read'), write: pathsOf(claims, 'write') },
    // What is always asked cannot be answered for good.
    offers: offersOf(asks.filter(({ rule }) => rule?.pinned !== true).map((one) => one.claim)),
    toolOffers: offersOf(claims),
  };
}

function pathsOf(claims: readonly Claim[], kind: 'read' | 'write'): readonly string[] {
  return claims.flatMap((claim) => (claim.kind === kind && claim.fault === undefined ? [claim.what] : []));
}

/** The ruling to name: the strictest; of a call that is allowed, a grant that it needed, else a rule. */
function decisive(rulings: readonly [Ruling, ...Ruling[]]): Ruling {
  const [first] = rulings;
  if (first.verdict !== 'allow') return first;
  return rulings.find(({ rule }) => rule?.scope === 'grant') ?? rulings.findLast(({ rule }) => rule) ?? first;
}

function offersOf(claims: readonly Claim[]): readonly string[] {
  return [...new Set(claims.flatMap((claim) => offersFor(claim)))];
}

/** Whether grants cover the tool, or what it says it touches, together with rules. */
function isGranted(rulings: readonly Ruling[], granted: (claim: Claim) => boolean): boolean {
  const touched = rulings.filter(({ claim }) => claim.kind !== 'tool');
  const isTool = rulings.some(({ claim }) => claim.kind === 'tool' && granted(claim));
  const isCovered = touched.every(
    ({ verdict, rule, claim }) => granted(claim) || (verdict === 'allow' && rule !== undefined),
  );
  return isTool || (isCovered && touched.some(({ claim }) => granted(claim)));
}

/** A session whose rules count: each of its line has those of the deck, of the home, of all above it, and its own. */
function partyOf({ config }: PermitParts, { line, workspace }: PermitSubject): Omit<Party, 'grants'> {
  const rules = [
    ...scoped('manifest', parseRules(config.permissions ?? [])),
    ...scoped('project', parseRules(config.projectPermissions ?? [])),
  ];
  const [{ info }] = line;
  let above: readonly string[] = [];
  return {
    session: info.session,
    parent: info.parent,
    workspace,
    lineage: line.toReversed().map(({ info: at, origin }) => {
      const { rules: own = [] } = origin.settings;
      // A fork of a fork has a copy of the rules above it.
      if (!isDeepStrictEqual(own, above)) rules.push(...scoped('session', own.map(readRule)));
      above = own;
      return { session: at.session, rules: [...rules] };
    }),
  };
}

function scoped(scope: ScopedRule['scope'], rules: readonly Rule[]): readonly ScopedRule[] {
  return rules.map((rule) => ({ ...rule, scope }));
}

/** A rule of a tape. One that cannot be read denies everything. */
function readRule(text: string): Rule {
  try {
    return parseRule(text);
  } catch (error) {
    if (error instanceof RuleFault) return unreadable(text);
    throw error;
  }
}

/** The directory of the deck; undefined when that of the process was deleted. */
function directoryOf({ cwd }: PermitParts): string | undefined {
  try {
    return cwd ?? process.cwd();
  } catch {
    return undefined;
  }
}

/** The answers that count for good on a session's tape, inherited ones too. A rewind takes those after its point back. */
async function grantsOf(
  store: TapeStore,
  { id }: SessionInfo,
  from: Seq,
): Promise<readonly { readonly seq: Seq; readonly rule: ScopedRule }[]> {
  const grants: { seq: Seq; rule: ScopedRule }[] = [];
  for await (const { seq, payload, elsewhere } of store.entries.read(id, { name: grantedNote, from })) {
    if (!isObject(payload) || typeof payload.rule !== 'string') continue;
    const rule = { ...readRule(payload.rule), scope: 'grant' } as const;
    if (elsewhere === true && rule.verdict === 'allow') continue;
    const [range] = await store.views.ranges(id, { from: seq });
    if (range?.hiddenBy === undefined) grants.push({ seq, rule });
  }
  return grants;
}

/**
 * The rules of a session as its tape holds them, one in each text.
 * @param act what cannot be done: `fork 'main'`
 * @throws SESSION_BAD_INPUT, with line and column
 */
export function ruleTexts(rules: RuleTexts, act: string): string[] {
  try {
    return parseRules(rules).map(({ text }) => text);
  } catch (error) {
    if (!(error instanceof RuleFault)) throw error;
    const { line, column, message } = error;
    throw new SessionError('SESSION_BAD_INPUT', `cannot ${act} with these rules: ${message}`, {
      data: { field: 'rules', line, column },
    });
  }
}
