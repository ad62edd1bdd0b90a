import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { payloads } from '../payload.ts';
import { type Bench, counted, type Row } from '../topic.ts';
import { peers as all } from './all.ts';
import { countSurvivors, countSynced, type Share } from './durable.ts';
import type { Text } from './peer.ts';
import { bundle } from './process.ts';
import { prepare, type Ready } from './ready.ts';
import { rowsOf, works } from './works.ts';

/**
 * What people would use instead of this store, on the same texts. Each work of each peer runs in a process of its own.
 * A quick run installs nothing: it has only the peers that need no packages.
 */
export async function peers(bench: Bench): Promise<Row[]> {
  const sizes = {
    long: bench.size(100_000, 200),
    short: bench.size(1000, 100),
    many: bench.size(10_000, 20),
    appends: bench.size(200, 5),
    writes: bench.size(10, 2),
  };
  const texts = textsOf(sizes.long);
  const file = join(bench.dir, 'peers-texts.jsonl');
  writeFileSync(file, texts.map((text) => `${JSON.stringify(text)}\n`).join(''));
  const program = await bundle(join(bench.dir, 'peers-program'));
  const ready: Ready[] = [];
  for (const peer of all.filter(({ packages }) => bench.size(true, Object.keys(packages).length === 0)))
    try {
      ready.push(await prepare(bench, { peer, program, texts: file, sizes }));
    } catch (error) {
      if (peer === all[0]) throw error;
      bench.note(`${peer.name} is skipped: ${(error as Error).message}`);
    }
  const rows: Row[] = [];
  for (const measured of works(file, texts, sizes)) rows.push(...(await rowsOf(bench, ready, measured)));
  const written = texts.slice(0, sizes.writes);
  for (const each of ready) rows.push(...(await durability(bench, each, written)));
  return rows;
}

function textsOf(count: number): Text[] {
  const next = payloads();
  return Array.from({ length: count }, () => {
    const { role, content } = next().payload as unknown as {
      role: Text['role'];
      content: { text: string }[];
    };
    // Mastra keeps no spaces at the ends.
    const text = content.map((part) => part.text).join('');
    return { role, text: text.trim() };
  });
}

/** Whether what a peer acknowledges survives the end of its process, and that of the machine. */
async function durability(bench: Bench, each: Ready, texts: readonly Text[]): Promise<Row[]> {
  const row = (work: string, { kept, acknowledged }: Share) =>
    counted(kept, acknowledged, { work, store: each.store, against: 'those acknowledged', unit: 'share' });
  const rows: Row[] = [];
  try {
    const found = await countSurvivors(each, each.short, texts);
    rows.push(row('writes found after a kill -9 at their acknowledgement', found));
    const synced = await countSynced(each, each.short, texts);
    if (typeof synced === 'string') bench.note(`${each.store}: syncs are not counted: ${synced}`);
    else rows.push(row('writes that waited for the disk before their acknowledgement', synced));
  } catch (error) {
    if (each.peer === all[0]) throw error;
    bench.note(`${each.store}: durability: ${(error as Error).message}`);
  }
  return rows;
}
