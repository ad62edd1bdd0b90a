import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDeck } from '@tapedeck/runtime';
import {
  ancestryOf,
  claimsOf,
  decideCall,
  factsOf,
  openPermits,
  parseRules,
  rememberedPaths,
  type ScopedRule,
} from '@tapedeck/runtime/internal';
import { openTapeStore } from '@tapedeck/tape';
import { gather, measure, median } from './measure.ts';
import { type Bench, compared, counted, type Row } from './topic.ts';

const budgetUs = 200;
const sessions = 6;
const rules = ['trusted', 'deny! read(~/.ssh/**)', 'deny write({workspace}/dist/**)', 'ask exec(git *)'];

const call = { tool: 'write_file', input: { path: 'src/a.ts' } };
const traits = { paths: { write: ['path'] } };

/** Decisions on a call that writes a file, in a session with five above it. */
export async function permissions(bench: Bench): Promise<Row[]> {
  const workspace = realpathSync(bench.dir);
  const home = join(workspace, 'home');
  mkdirSync(join(workspace, 'src'), { recursive: true });
  mkdirSync(join(home, '.ssh'), { recursive: true });
  writeFileSync(join(workspace, 'src/a.ts'), '');
  const scoped = parseRules(rules).map((rule): ScopedRule => ({ ...rule, scope: 'manifest' }));
  const lineage = Array.from({ length: sessions }, (_, i) => ({ session: `s${i}`, rules: scoped }));
  const party = { session: 's5', parent: 's4', workspace, lineage, grants: [] };
  const decide = () => {
    const disk = { home, real: rememberedPaths() };
    const place = { ...disk, workspace };
    const claims = claimsOf(call, traits, { place, target: (session) => ({ session }) });
    return decideCall([party], claims, disk)[0].verdict;
  };
  const places = [join(workspace, 'src/a.ts'), workspace, join(workspace, 'dist')];
  mkdirSync(join(workspace, 'dist'), { recursive: true });
  const lookUp = () => places.map((path) => realpathSync.native(path));
  if (decide() !== 'allow') throw new Error('the call is decided on otherwise');
  const times = bench.size(500, 5);
  const taken = measure(
    { decide: { act: decide }, lookUp: { act: lookUp } },
    { rounds: bench.size(30, 3), times },
  );
  const whole = await inRun(bench, workspace);
  return [
    compared(taken.decide, taken.lookUp, {
      work: 'decision on a call, by the rules of six sessions',
      against: 'its look-ups of real paths',
      unit: 'µs',
      goal: { most: 5 },
    }),
    counted(median(taken.decide), budgetUs, {
      work: 'decision on a call, by the rules of six sessions',
      against: 'a budget of 0.2 ms',
      unit: 'µs',
      goal: { most: 1 },
    }),
    counted(whole, budgetUs, {
      work: 'decision in a run, with what a person has granted read from the tape',
      against: 'a budget of 0.2 ms',
      unit: 'µs',
      goal: { most: 1 },
    }),
  ];
}

/** The microseconds of a decision in a run. */
async function inRun(bench: Bench, cwd: string): Promise<number> {
  using store = openTapeStore(':memory:');
  await using deck = await openDeck({ store, limits: { maxDepth: 9 } });
  let session = await deck.session('s0');
  for (let i = 1; i < sessions; i += 1) session = await session.fork({ name: `s${i}`, onUnmerged: 'keep' });
  const line = await ancestryOf(store, await factsOf(store, await session.info()));
  const parts = { store, home: undefined, config: { permissions: rules }, env: process.env, cwd };
  const permits = await openPermits(parts, { line, workspace: undefined });
  const times = bench.size(2_000, 10);
  const { decide } = await gather(
    {
      decide: async () => {
        const start = performance.now();
        for (let i = 0; i < times; i += 1) await permits.permit(call, traits);
        return ((performance.now() - start) * 1000) / times;
      },
    },
    bench.size(10, 2),
  );
  return median(decide);
}
