import fs from 'node:fs';
import { basename, join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, TapeError } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { crashActs } from './crash-acts.ts';
import type { CrashOrder } from './crash-round.ts';
import { watchJournal } from './journal-points.ts';
import { seeded } from './seeded.ts';

/**
 * A process that works on a home until it is killed: `crash-worker.ts ORDER`, where the order is a `CrashOrder` as
 * JSON. It writes each acknowledgement to a file before it continues. It kills itself where the order says.
 */
const order = JSON.parse(process.argv[2] ?? '') as CrashOrder;
const random = seeded(order.seed);
const { appendFileSync, copyFileSync, mkdirSync, writeSync, openSync } = fs;
const acks = openSync(order.acks, 'a');
const say = (line: string) => writeSync(acks, `${line}\n`);

/** Copies the home as a kill would leave it at this moment, with what was acknowledged by then. */
function copyHome(dir: string): void {
  mkdirSync(dir, { mode: 0o700 });
  for (const file of [order.db, `${order.db}-wal`, order.graph, order.acks])
    if (fs.existsSync(file)) copyFileSync(file, join(dir, basename(file)));
}

const seen = new Set<string>();
const copied = new Set<string>();
const sessions = new Set<string>();
let armed = false;
let act = 'open';
let commits = 0;

function passed(point: string): void {
  if (!seen.has(point)) appendFileSync(order.points, `passed ${point}\n`);
  seen.add(point);
  // What an act does before its commit is undone by a kill: of each act a copy is taken there.
  if (point === 'commit/before') commits += 1;
  const occasion = `${point.replace('/', ' ')}${point === 'commit/before' ? ` in ${act} ${commits}` : ''}`;
  if (order.copies !== undefined && !copied.has(occasion)) copyHome(join(order.copies, occasion));
  copied.add(occasion);
  const dies = order.dieAt === point ? armed : random.chance(order.diePercent);
  if (!dies) return;
  appendFileSync(order.points, `died ${point}\n`);
  process.kill(process.pid, 'SIGKILL');
}

watchJournal(order.graph, {
  passed,
  cut: (bytes) => (bytes > 1 && random.chance(50) ? 1 + random.below(bytes - 1) : bytes),
});
onCrashPoint(passed);

process.stdout.write('ready\n');
const open = () => openTapeStore(order.db, { journal: openJournal(order.graph) });
armed = order.armAfter === 0;
let store = open();
const kinds = Object.keys(crashActs);
let cycle: string[] = [];
for (let i = 0; i < order.acts; i += 1) {
  armed = i >= order.armAfter;
  if (cycle.length === 0) cycle = random.shuffled([...kinds, 'open again']);
  const kind = cycle.pop() ?? '';
  [act, commits] = [kind, 0];
  const key = `${order.who}-${i}`;
  const session = random.chance(50) ? 'main' : order.who;
  try {
    if (kind === 'open again') {
      store.close();
      store = open();
    } else {
      const { session: name, id } = store.sessions.open(session);
      if (!sessions.has(name)) say(JSON.stringify({ act: 'session', name, id }));
      sessions.add(name);
      crashActs[kind]?.({ store, session, key, say: (ack) => say(JSON.stringify(ack)) });
    }
  } catch (error) {
    // Another worker holds the session: the act was refused, and nothing of it counts.
    if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') throw error;
  }
}
store.close();
