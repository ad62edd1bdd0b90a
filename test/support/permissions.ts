import type { RuleTexts, ToolTraits } from '@tapedeck/runtime';
import {
  claimsOf,
  decideCall,
  type Party,
  parseRules,
  type Ruling,
  rememberedPaths,
  type Scope,
  type ScopedRule,
} from '@tapedeck/runtime/internal';

/** Rules of some scopes: `{ manifest: 'trusted', session: ['deny exec(*)'] }`. */
export type Scopes = Partial<Record<Scope, RuleTexts>>;

/** The rules of one session as a layer has them. */
function rulesIn(scopes: Scopes): readonly ScopedRule[] {
  const order = ['manifest', 'project', 'session'] as const;
  return order.flatMap((scope) => parseRules(scopes[scope] ?? []).map((rule) => ({ ...rule, scope })));
}

/** What the tools of these tests say that they touch. */
export const traits: Readonly<Record<string, ToolTraits>> = {
  read_file: { paths: { read: ['path'] } },
  write_file: { paths: { write: ['path'] } },
  copy_file: { paths: { read: ['source'], write: ['destination'] } },
  run_command: { command: 'command' },
  run_program: { command: ['program', 'args'] },
  send: { target: 'to' },
  add: { paths: {} },
};

export interface Asked {
  readonly workspace: string;
  readonly home?: string;
  /** The scopes of each session of the line, the root first. */
  readonly line: readonly Scopes[];
  readonly grants?: RuleTexts;
  readonly ignoresCase?: boolean;
}

/** The rulings on a call of the last session of a line `s0`, `s1`, …, the strictest first. */
export function rulingsOn(
  { workspace, home, line, grants = [], ignoresCase = false }: Asked,
  tool: string,
  input: unknown,
): readonly [Ruling, ...Ruling[]] {
  const real = rememberedPaths();
  const disk = { home, real, ignoresCase };
  const target = (text: string) => ({ session: text, parent: parents[text] });
  const claims = claimsOf({ tool, input }, traits[tool] ?? {}, { place: { ...disk, workspace }, target });
  return decideCall([partyOf({ workspace, line, grants })], claims, disk);
}

/** The sessions that calls send to in these tests, and their parents; the line is `s0`, `s1`, … */
const parents: Readonly<Record<string, string>> = { s1: 's0', below: 's1', other: 's0' };

/** The last session of a line. */
function partyOf({ workspace, line, grants = [] }: Omit<Asked, 'home' | 'ignoresCase'>): Party {
  let rules: readonly ScopedRule[] = [];
  const lineage = line.map((scopes, i) => {
    rules = [...rules, ...rulesIn(scopes)];
    return { session: `s${i}`, rules };
  });
  const last = line.length - 1;
  return {
    session: `s${last}`,
    parent: last === 0 ? undefined : `s${last - 1}`,
    workspace,
    lineage,
    grants: parseRules(grants).map((rule) => ({ ...rule, scope: 'grant' })),
  };
}
