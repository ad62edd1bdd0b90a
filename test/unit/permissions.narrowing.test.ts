import { mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import { openDeck, type Permit } from '@tapedeck/runtime';
import { parseRule } from '@tapedeck/runtime/internal';
import { note } from '@tapedeck/tape';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { rulingsOn, type Scopes, traits } from '../support/permissions.ts';
import { type Random, seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const dir = tempDir();
afterAll(() => dir[Symbol.dispose]());
const workspace = `${realpathSync(dir.path)}/work`;
mkdirSync(`${workspace}/src`, { recursive: true });
symlinkSync('/etc', `${workspace}/out`);

const seed = Number(process.env.TAPEDECK_SEED ?? 20_261_124);
const rank = { deny: 0, ask: 1, allow: 2 } as const;

/** Patterns, and the calls whose claims they cover, by the words of the claims alone. */
const patterns: Readonly<Record<string, (claim: string) => boolean>> = {
  '*': () => true,
  write_file: (claim) => claim === 'write_file',
  'run_*': (claim) => claim === 'run_command',
  mystery: (claim) => claim === 'mystery' || claim === 'opaque(mystery)',
  'opaque(*)': (claim) => claim.startsWith('opaque('),
  'read(**)': (claim) => claim.startsWith('read('),
  'write(**)': (claim) => claim.startsWith('write('),
  'write({workspace}/**)': (claim) => claim.startsWith(`write(${workspace}/`),
  'write(src/*)': (claim) => claim === `write(${workspace}/src/a)`,
  'write(out/**)': (claim) => claim.startsWith('write(/etc/'),
  'exec(*)': (claim) => claim.startsWith('exec('),
  'exec(git *)': (claim) => claim === 'exec(git log)',
  'send(*)': (claim) => claim.startsWith('send('),
  'send(other)': (claim) => claim === 'send(other)',
};
const calls: readonly (readonly [string, object, readonly string[]])[] = [
  ['write_file', { path: 'src/a' }, ['write_file', `write(${workspace}/src/a)`]],
  ['write_file', { path: 'out/x' }, ['write_file', 'write(/etc/x)']],
  [
    'copy_file',
    { source: 'out/x', destination: 'b' },
    ['copy_file', 'read(/etc/x)', `write(${workspace}/b)`],
  ],
  ['run_command', { command: 'git log' }, ['run_command', 'exec(git log)']],
  ['run_command', { command: 'git log; x' }, ['run_command', "exec(sh -c 'git log; x')"]],
  ['send', { to: 'other' }, ['send', 'send(other)']],
  ['mystery', {}, ['mystery', 'opaque(mystery)']],
];

const verdicts = ['deny', 'ask', 'allow', 'deny!', 'ask!', 'allow!'] as const;

function rulesOf(random: Random, most: number): string[] {
  const rule = () => `${random.of(verdicts)} ${random.of(Object.keys(patterns))}`;
  return Array.from({ length: random.below(most + 1) }, rule);
}

/** What the rules of the documentation say, written down once more, for the claims of one call. */
function expected(line: readonly Scopes[], grants: readonly string[], claims: readonly string[]) {
  const covers = (rule: string, claim: string) =>
    patterns[parseRule(rule).text.replace(/^\S+\s+/, '')]?.(claim);
  const ofClaim = (claim: string) => {
    let strictest: 0 | 1 | 2 = 2;
    let isPinned = false;
    const all: string[] = [];
    for (const { manifest = [], project = [], session = [] } of line) {
      all.push(...[manifest, project, session].flat());
      if (all.length === 0) continue;
      const about = all.filter((rule) => covers(rule, claim));
      const levels = about.map((rule) => rank[parseRule(rule).verdict]);
      const pins = about
        .filter((rule) => parseRule(rule).pinned)
        .map((rule) => rank[parseRule(rule).verdict]);
      const isTool = !claim.includes('(');
      const own = Math.min(levels.at(-1) ?? (isTool ? 2 : 1), ...pins) as 0 | 1 | 2;
      isPinned ||= own === 1 && pins.includes(1);
      strictest = Math.min(strictest, own) as 0 | 1 | 2;
    }
    const grant = grants.findLast((rule) => covers(rule, claim));
    if (grant === undefined || strictest === 0) return strictest;
    const granted = rank[parseRule(grant).verdict];
    return strictest === 1 && !isPinned ? granted : Math.min(strictest, granted);
  };
  return Math.min(...claims.map(ofClaim));
}

test('random lineages decide as the rules say, and only narrow', () => {
  const random = seeded(seed);
  const many = sized(400, 1_000, 500_000);
  const seen = new Set<string>();
  for (let i = 0; i < many; i += 1) {
    const deck = { manifest: rulesOf(random, 3), project: rulesOf(random, 2) };
    const line = Array.from(
      { length: 1 + random.below(4) },
      (_, at): Scopes => ({
        ...(at === 0 && deck),
        session: rulesOf(random, random.of([0, 0, 4])),
      }),
    );
    const grants = rulesOf(random, random.of([0, 2])).filter((rule) => !rule.startsWith('ask'));
    const [tool, input, claims] = random.of(calls);
    const at = (some: readonly Scopes[], granted: readonly string[]) =>
      rank[rulingsOn({ workspace, line: some, grants: granted }, tool, input)[0].verdict];
    const what = JSON.stringify({ seed, i, line, grants, tool, input });
    const verdict = at(line, grants);
    seen.add(`${verdict}`);
    expect(verdict, what).toBe(expected(line, grants, claims));
    // A child with what its parent was granted, or with nothing, and with any rules of its own.
    const child = [...line, { session: rulesOf(random, 4) }];
    expect(at(child, grants), what).toBeLessThanOrEqual(verdict);
    expect(at(child, []), what).toBeLessThanOrEqual(at(line, []));
    // What a person grants answers what asks, and lifts no refusal.
    const more = [...grants, ...Object.keys(patterns).map((pattern) => `allow ${pattern}`)];
    if (at(line, []) === rank.deny) expect(at(line, more), what).toBe(rank.deny);
  }
  expect([...seen].sort()).toEqual(['0', '1', '2']);
});

/** A session of a random tree, with what it should be decided by. */
interface Node {
  readonly name: string;
  readonly line: readonly Scopes[];
  grants: readonly string[];
}

test('forks, grants and merges of real sessions never widen what a session may do', async () => {
  const random = seeded(seed + 1);
  const trees = sized(3, 6, 2_000);
  for (let i = 0; i < trees; i += 1) {
    const deckRules = { permissions: rulesOf(random, 3), projectPermissions: rulesOf(random, 2) };
    const tools = Object.fromEntries(
      [...Object.entries(traits), ['mystery', {}] as const].map(([name, own]) => [
        name,
        { inputSchema: z.looseObject({}), ...own },
      ]),
    );
    using store = openStore();
    await using deck = await openDeck({
      store,
      cwd: workspace,
      tools,
      ...deckRules,
      limits: { maxDepth: 9 },
    });
    const own = rulesOf(random, 2);
    await deck.session('root', { rules: own });
    const scopes = { manifest: deckRules.permissions, project: deckRules.projectPermissions };
    const nodes: Node[] = [{ name: 'root', line: [{ ...scopes, session: own }], grants: [] }];
    const merged = new Set<string>();
    const check = async (act: string) => {
      for (const { name, line, grants } of nodes) {
        const session = await deck.find(name);
        const [tool, input, claims] = random.of(calls);
        const permit: Permit | undefined = await session?.permits({ tool, input: input as never });
        const what = `seed ${seed}, tree ${i}, after ${act}: ${JSON.stringify({ name, line, grants, tool, input })}`;
        expect(permit === undefined ? -1 : rank[permit.verdict], what).toBe(expected(line, grants, claims));
      }
    };
    for (let step = 0; step < 8; step += 1) {
      const node = random.of(nodes);
      const session = await deck.find(node.name);
      const kind = random.of(['fork', 'fork', 'grant', 'merge']);
      if (kind === 'fork') {
        const rules = rulesOf(random, 3);
        const isFresh = random.chance(40);
        const name = `s${step}`;
        await session?.fork({ name, rules, onUnmerged: 'keep', ...(isFresh && { inherit: 'nothing' }) });
        nodes.push({ name, line: [...node.line, { session: rules }], grants: isFresh ? [] : node.grants });
      } else if (kind === 'grant') {
        const rule = `${random.of(['allow', 'deny'])} ${random.of(Object.keys(patterns))}`;
        await store.entries.append(node.name, [note('permission/granted', { rule })]);
        node.grants = [...node.grants, rule];
      } else if (node.name !== 'root' && !merged.has(node.name)) {
        const { parent } = store.sessions.find(node.name) ?? {};
        await (await deck.find(parent ?? ''))?.merge(node.name);
        merged.add(node.name);
      }
      await check(kind);
    }
  }
});
