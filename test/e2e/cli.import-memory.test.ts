import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { type Shape, writeTranscript } from '../bench/transcripts.ts';
import { hasPeak, peakMemory } from '../support/peak-memory.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The peak of an import, in MB, and those of commands behind it. A process that only opens a database needs 50. */
async function peaksOf(
  write: Shape | ((file: string) => void),
  ...others: readonly string[]
): Promise<readonly number[]> {
  using dir = tempDir();
  const file = join(dir.path, '5f3c9a52-0000-4000-8000-000000000000.jsonl');
  if (typeof write === 'function') write(file);
  else writeTranscript(file, write);
  const peaks: number[] = [];
  for (const args of [['import', file, '--quiet'], ...others.map((line) => line.split(' '))])
    peaks.push((await peakMemory(join(dir.path, 'home'), args)).peak);
  return peaks;
}

const peakOf = async (write: Shape | ((file: string) => void)) => (await peaksOf(write))[0];

const timeout = sized(60_000, 300_000, 600_000);

/** More than the limits leave room for, if any of it were kept. */
const large = sized(1_000_000, 80_000_000, 120_000_000);

describe.skipIf(!hasPeak)('an import takes little memory (needs /proc)', () => {
  test(`of a transcript of ${large / 1_000_000} MB`, { timeout }, async () => {
    expect(await peakOf({ bytes: large })).toBeLessThanOrEqual(180);
  });

  test('of a compressed transcript of that size', { timeout }, async () => {
    const compressed = (file: string) => {
      writeTranscript(file, { bytes: large });
      writeFileSync(file, zstdCompressSync(readFileSync(file)));
    };
    expect(await peakOf(compressed)).toBeLessThanOrEqual(200);
  });

  test('of a transcript with lines of 16 MB', { timeout }, async () => {
    const shape = sized<Shape>(
      { bytes: 1_000_000 },
      { bytes: 70_000_000, output: 7_900_000 },
      { bytes: 70_000_000, output: 7_900_000 },
    );
    expect(await peakOf(shape)).toBeLessThanOrEqual(256);
  });

  test('of a transcript with prompts of 8 MB, and reading them, however many', { timeout }, async () => {
    const shape: Shape = {
      bytes: sized(1_000_000, 80_000_000, 240_000_000),
      prompt: sized(80_000, 7_900_000, 7_900_000),
    };
    const peaks = await peaksOf(shape, 'check', 'verify');
    expect(Math.max(...peaks)).toBeLessThanOrEqual(230);
  });

  test('of a folder with long first lines, of a transcript and of another file', { timeout }, async () => {
    const long = 'x'.repeat(sized(20_000_000, 60_000_000, 60_000_000));
    using dir = tempDir();
    const home = join(dir.path, 'home');
    const folder = join(home, '.claude/projects/found');
    mkdirSync(folder, { recursive: true });
    const id = '5f3c9a52-0000-4000-8000-000000000000';
    const queued = { type: 'queue-operation', operation: 'enqueue', sessionId: id, content: long };
    writeTranscript(join(folder, `${id}.jsonl`), { bytes: 100_000 });
    const transcript = readFileSync(join(folder, `${id}.jsonl`));
    writeFileSync(join(folder, `${id}.jsonl`), `${JSON.stringify(queued)}\n${transcript}`);
    writeFileSync(join(folder, 'other.jsonl'), JSON.stringify([long, long, long]));
    const { peak } = await peakMemory(home, ['import', '--dry-run']);
    expect(peak).toBeLessThanOrEqual(140);
  });

  test('of a transcript of 9 MB with 3,000,000 empty objects', { timeout }, async () => {
    const values = `[${Array.from({ length: 5_000 }, () => '{}').join()}]`;
    const lines = Array.from(
      { length: sized(6, 600, 600) },
      (_, i) =>
        `{"type":"user","uuid":"u${i}","parentUuid":${i === 0 ? null : `"u${i - 1}"`},"isSidechain":false,` +
        `"message":{"role":"user","content":"ask"},"toolUseResult":${values}}\n`,
    );
    expect(await peakOf((file) => writeFileSync(file, lines.join('')))).toBeLessThanOrEqual(220);
  });
});
